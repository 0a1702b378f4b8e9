// test/attacks/mutation/road-walker.mjs: the commands of the road, one after the other, in one process: starting one for each costs more than what
// they do. A line in is the arguments as JSON, and a line out what came of them. "bring-out" is what ends the run of an agent.
// The first argument is the build that it takes them from.
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const build = process.argv[2];
const { main } = await import(join(build, 'cli/main.js'));
const answer = process.stdout.write.bind(process.stdout);

for await (const line of createInterface({ input: process.stdin })) {
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'])
    process[stream].write = (text) => {
      said[stream] += text;
      return true;
    };
  const [verb, ...rest] = JSON.parse(line);
  const exitCode = verb === 'bring-out' ? await bringOut(rest[0]) : await main([verb, ...rest]);
  answer(`${JSON.stringify({ exitCode, ...said })}\n`);
}

async function bringOut(id) {
  const [{ makeHostContext }, { bringOut: bring }, { readTask }] = await Promise.all(
    ['cli/make-context.js', 'results/bring-out.js', 'store/tasks.js'].map((file) => import(join(build, file))),
  );
  const context = makeHostContext(process.env);
  const details = { agentTitle: 'sh', agentEmail: 'sh@ags.invalid', scratch: [] };
  try {
    await bring(context, await readTask(context.stateDir, id), details);
    return 0;
  } catch (error) {
    process.stdout.write(error.stack);
    return 1;
  }
}
