// web/src/shell/shell.tsx: the frame around every page.
import { Outlet } from '@tanstack/react-router';
import type { ReactNode } from 'react';

export function Shell(): ReactNode {
  return (
    <main>
      <Outlet />
    </main>
  );
}
