import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';

/** Minutes each, whatever their size says: begun last, they would keep one core waiting for the other. */
const LONG = [
  'test/conformance/',
  'test/e2e/agents.full',
  'test/agents/',
  'test/attacks/doctor-attack.full',
  'test/sandbox/remote/',
  'test/nested-docker/',
  'test/sandbox/container.full',
  'test/agent-run/start',
  'test/attacks/launch',
  'test/attacks/git-pipeline',
  'test/results/bring-out',
  'test/workspace/delta.full',
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.some((place) => moduleId.includes(place));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    // scripts/test.mjs names exactly the files of a tier.
    include: process.env['AGS_TEST_FILES']?.split('\n') ?? ['test/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // What comes true in its own time has plenty of it: a busy machine is no fault.
    expect: { poll: { timeout: 20_000 } },
    // One more than two cores: most tests wait for processes of their own.
    maxWorkers: 3,
    globalSetup: 'test/remembered.ts',
    sequence: { sequencer: LongFirst },
  },
});
