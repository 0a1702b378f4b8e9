// web/src/network/page.tsx: to come.
import type { ReactNode } from 'react';

export function NetworkPage(): ReactNode {
  return <h1>NetworkPage</h1>;
}
