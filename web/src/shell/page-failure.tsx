// web/src/shell/page-failure.tsx: what is shown instead of a page.
import { Link } from '@tanstack/react-router';
import type { ErrorComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Empty, Failure } from '../ui/states.tsx';

export function NotHere(): ReactNode {
  return (
    <>
      <h1 className="unseen">Not found</h1>
      <Empty title="There is no page at this address.">
        <Link to="/" className="text-accent underline">
          Go to the tasks
        </Link>
      </Empty>
    </>
  );
}

export function PageFailure({ error, reset }: ErrorComponentProps): ReactNode {
  return (
    <>
      <h1 className="unseen">This page failed</h1>
      <Failure error={error} retry={reset} title="This page failed. Tasks are not affected." />
    </>
  );
}
