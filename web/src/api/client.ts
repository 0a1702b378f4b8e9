// web/src/api/client.ts: the API, as the page calls it: the client that programs use, with the session of this browser.
import { ApiRefusal, createClient } from '../../../src/client/client.ts';

export { ApiRefusal };

export const api = createClient({
  url: '',
  fetch: async (input, init) =>
    fetch(input, init).catch(() => {
      throw new ApiRefusal(0, {
        error: { code: 'unreachable', message: 'The server cannot be reached.', hint: 'Start it again: ags serve' },
      });
    }),
});

/** Where a WebSocket of this server is. */
export function socketAddress(path: string): string {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
