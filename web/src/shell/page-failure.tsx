// web/src/shell/page-failure.tsx: what is shown instead of a page.
import type { ErrorComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';

export function NotHere(): ReactNode {
  return <h1>There is no page at this address.</h1>;
}

export function PageFailure({ error }: ErrorComponentProps): ReactNode {
  return <h1>{error instanceof Error ? error.message : 'Something went wrong.'}</h1>;
}
