// test/transfer/import-driver.mjs: imports files in a separate process, so that it can run as any user, and fast.
// Standard input: { files, into } as JSON. Prints each result as JSON.
import { text } from 'node:stream/consumers';
import { makeHostContext } from '../../dist/cli/make-context.js';
import { openImport } from '../../dist/transfer/import.js';

const { files, into } = JSON.parse(await text(process.stdin));
const context = makeHostContext(process.env);
const outcomes = [];
for (const file of files) {
  try {
    const found = await openImport(context, file, into);
    try {
      const { task } = await found.carryOut({ trust: false });
      outcomes.push({ file, name: task.name });
    } finally {
      found[Symbol.dispose]();
    }
  } catch (error) {
    outcomes.push({ file, code: error.code ?? 'bug', message: error.message, stack: error.stack });
  }
}
console.log(JSON.stringify(outcomes));
