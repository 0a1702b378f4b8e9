// bench/page/helper.mjs: runs a part of the measurement in a separate process, so that its load does not count.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export function startHelper(name) {
  const child = fork(fileURLToPath(new URL(`./${name}.mjs`, import.meta.url)), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const end = () => child.kill('SIGKILL');
  process.on('exit', end);
  return {
    tell: (wish) => void child.send(wish),
    async answer() {
      const ended = new AbortController();
      const { signal } = ended;
      try {
        return await Promise.race([
          once(child, 'message', { signal }).then(([answer]) => answer),
          once(child, 'exit', { signal }).then(() => {
            throw new Error(`${name} has ended`);
          }),
        ]);
      } finally {
        ended.abort();
      }
    },
    close() {
      process.off('exit', end);
      child.kill('SIGKILL');
    },
  };
}
