// test/transfer/import-driver.mjs: imports files in a process of its own, so that it can be done as any user, and quickly.
// Standard input: { files, into } as JSON. Prints what came of each as JSON.
import { text } from 'node:stream/consumers';
import { makeWorld } from '../../dist/cli/make-world.js';
import { openImport } from '../../dist/tasks/import.js';

const { files, into } = JSON.parse(await text(process.stdin));
const world = makeWorld(process.env);
const outcomes = [];
for (const file of files) {
  try {
    const found = await openImport(world, file, into);
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
