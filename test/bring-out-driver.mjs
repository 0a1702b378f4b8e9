// test/bring-out-driver.mjs: brings the work of a task out in a process of its own, so that it can be done as any user.
// Arguments: the task, the details as JSON. Prints what came of it as JSON.
import { join } from 'node:path';
import { release, totalmem } from 'node:os';
import { bringOut } from '../dist/tasks/bring-out.js';
import { readTask } from '../dist/store/tasks.js';

const [id, details] = process.argv.slice(2);
const home = process.env.HOME;
const world = {
  cwd: process.cwd(),
  home,
  env: process.env,
  uid: process.getuid(),
  gid: process.getgid(),
  userName: 'dev',
  shell: '/bin/sh',
  stateDir: join(home, '.local/state/ags'),
  cacheDir: join(home, '.cache/ags'),
  configFile: join(home, '.config/ags/config.yaml'),
  memoryBytes: totalmem(),
  kernel: release(),
  platform: process.platform,
  nodeArch: process.arch,
  pid: process.pid,
  now: () => new Date(),
};
try {
  const result = await bringOut(world, await readTask(world.stateDir, id), JSON.parse(details));
  console.log(JSON.stringify({ result }));
} catch (error) {
  console.log(
    JSON.stringify({
      error: { code: error.code ?? 'bug', message: error.message, hint: error.hint, stack: error.stack },
    }),
  );
}
