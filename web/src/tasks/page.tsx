// web/src/tasks/page.tsx: to come.
import type { ReactNode } from 'react';

export function TasksPage(): ReactNode {
  return <h1>TasksPage</h1>;
}
