// web/src/compare/page.tsx: to come.
import type { ReactNode } from 'react';

export function ComparePage(): ReactNode {
  return <h1>ComparePage</h1>;
}
