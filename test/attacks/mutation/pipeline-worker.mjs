// test/attacks/mutation/pipeline-worker.mjs: runs the commands of the pipeline in one process, because a process for each costs more than
// the commands. It reads arguments as JSON, one line each, and answers with a line of JSON. "bring-out" does what the end of a run does.
// Its first argument is the directory of the build.
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
