// web/src/review/page.tsx: to come.
import type { ReactNode } from 'react';

export function ReviewPage(): ReactNode {
  return <h1>ReviewPage</h1>;
}
