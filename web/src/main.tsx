// web/src/main.tsx: starts the page.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { ApiRefusal } from './api/client.ts';
import { LiveProvider } from './live/live.tsx';
import { syncRows } from './live/rows.ts';
import { connectLive } from './live/socket.ts';
import { applyTheme } from './look/theme.ts';
import './look/page.css';
import { router } from './router.tsx';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Live messages from the server mark data as changed.
      staleTime: Number.POSITIVE_INFINITY,
      retry: (count, error) => count < 2 && (!(error instanceof ApiRefusal) || error.status === 0),
      retryDelay: 400,
    },
  },
});
const live = connectLive();
syncRows(live, client);
applyTheme();

const root = document.querySelector('#root');
if (root === null) throw new Error('the page has no #root');
createRoot(root).render(
  <StrictMode>
    {/* The content security policy allows no style elements. page.css contains the ones that Base UI would add. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={client}>
        <LiveProvider live={live}>
          <RouterProvider router={router} />
        </LiveProvider>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
