// test/results/bring-out-driver.mjs: brings out a task's work in a separate process, so that it can run as any user.
// Arguments: the task and the details as JSON. Prints the result as JSON.
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
