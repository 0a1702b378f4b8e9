// test/results/bring-out-driver.mjs: brings the work of a task out in a process of its own, so that it can be done as any user.
// Arguments: the task, the details as JSON. Prints what came of it as JSON.
import { makeHostContext } from '../../dist/cli/make-context.js';
import { bringOut } from '../../dist/results/bring-out.js';
import { readTask } from '../../dist/store/tasks.js';

const [id, details] = process.argv.slice(2);
const context = makeHostContext(process.env);
try {
  const result = await bringOut(context, await readTask(context.stateDir, id), JSON.parse(details));
  console.log(JSON.stringify({ result }));
} catch (error) {
  console.log(
    JSON.stringify({
      error: { code: error.code ?? 'bug', message: error.message, hint: error.hint, stack: error.stack },
    }),
  );
}
