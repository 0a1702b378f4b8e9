// web/src/task/page.tsx: to come.
import type { ReactNode } from 'react';

export function TaskPage(): ReactNode {
  return <h1>TaskPage</h1>;
}
