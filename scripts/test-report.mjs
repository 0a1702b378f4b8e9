// scripts/test-report.mjs: a reporter of vitest: what came of each file, for the script that started it.
import { writeFileSync } from 'node:fs';

export default class {
  /** Errors that no test waited for belong to the file during which they came. */
  onTestRunEnd(modules, errors) {
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()];
      const states = tests.map((test) => test.result().state);
      const count = (state) => states.filter((one) => one === state).length;
      const astray = errors.filter((error) => error.VITEST_TEST_PATH === module.moduleId).length;
      const brokenItself = module.state() === 'failed' && count('failed') === 0 ? 1 : 0;
      return {
        file: module.moduleId,
        seconds: Math.round(module.diagnostic().duration / 1000),
        passed: count('passed'),
        failed: count('failed') + astray + brokenItself,
        names: tests.filter((test) => test.result().state === 'failed').map((test) => test.fullName),
        skipped: states.length - count('passed') - count('failed'),
      };
    });
    const known = new Set(files.map(({ file }) => file));
    const homeless = errors.filter((error) => !known.has(error.VITEST_TEST_PATH)).length;
    writeFileSync(process.env.AGS_TEST_REPORT, JSON.stringify({ files, homeless }));
  }
}
