// web/src/main.tsx: where the page starts.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { ApiRefusal } from './api/client.ts';
import { LiveProvider } from './live/live.tsx';
import { keepRows } from './live/rows.ts';
import { connectLive } from './live/socket.ts';
import { keepTheme } from './look/theme.ts';
import './look/page.css';
import { router } from './router.tsx';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // The server says when something changes.
      staleTime: Number.POSITIVE_INFINITY,
      retry: (count, error) => count < 2 && (!(error instanceof ApiRefusal) || error.status === 0),
      retryDelay: 400,
    },
  },
});
const live = connectLive();
keepRows(live, client);
keepTheme();

const root = document.querySelector('#root');
if (root === null) throw new Error('the page has no #root');
createRoot(root).render(
  <StrictMode>
    {/* The policy of the server allows no style elements; where Base UI would make some, page.css has them. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={client}>
        <LiveProvider live={live}>
          <RouterProvider router={router} />
        </LiveProvider>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
