// web/src/shell/page-failure.tsx: the pages for unknown addresses and for crashes.
import { Link } from '@tanstack/react-router';
import type { ErrorComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Empty, Failure } from '../ui/states.tsx';

export function NotFound(): ReactNode {
  return (
    <>
      <h1 className="unseen">Not found</h1>
      <Empty title="No page at this address">
        <Link to="/" className="text-accent underline">
          Go to tasks
        </Link>
      </Empty>
    </>
  );
}

export function PageFailure({ error, reset }: ErrorComponentProps): ReactNode {
  return (
    <>
      <h1 className="unseen">Page error</h1>
      <Failure error={error} retry={reset} title="This page crashed. Your tasks are not affected." />
    </>
  );
}
