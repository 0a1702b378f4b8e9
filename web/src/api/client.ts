// web/src/api/client.ts: the public API client, authenticated by the browser's session cookie.
import { ApiRefusal, createClient } from '../../../src/client/client.ts';

export { ApiRefusal };

export const api = createClient({
  url: '',
  fetch: async (input, init) =>
    fetch(input, init).catch(() => {
      throw new ApiRefusal(0, {
        error: { code: 'unreachable', message: 'The server cannot be reached.', hint: 'Start the server: ags serve' },
      });
    }),
});

export function socketAddress(path: string): string {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
