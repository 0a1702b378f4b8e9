// scripts/test-report.mjs: a vitest reporter that writes the results of each file for the script that started it.
import { writeFileSync } from 'node:fs';

export default class {
  /** Errors outside tests belong to the file that was running. */
  onTestRunEnd(modules, errors) {
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()];
      const of = (state) => tests.filter((test) => test.result().state === state);
      const astray = errors.filter((error) => error.VITEST_TEST_PATH === module.moduleId).length;
      const brokenItself = module.state() === 'failed' && of('failed').length === 0 ? 1 : 0;
      const skipped = tests.filter((test) => !['passed', 'failed'].includes(test.result().state));
      return {
        file: module.moduleId,
        seconds: Math.round(module.diagnostic().duration / 1000),
        passed: of('passed').length,
        failed: of('failed').length + astray + brokenItself,
        names: of('failed').map((test) => test.fullName),
        skipped: skipped.length,
        notes: skipped.map((test) => test.result().note ?? null),
      };
    });
    const known = new Set(files.map(({ file }) => file));
    const homeless = errors.filter((error) => !known.has(error.VITEST_TEST_PATH)).length;
    writeFileSync(process.env.AGS_TEST_REPORT, JSON.stringify({ files, homeless }));
  }
}
