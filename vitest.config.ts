import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores, and every test starts processes of its own.
    maxWorkers: 2,
    // A machine shared with others may starve a process for seconds; what fails twice is broken.
    retry: process.env['CI'] === undefined ? 0 : 1,
  },
});
