// web/src/diff/worker-pool.ts: highlights code in web workers, so that the page stays responsive.
// oxlint-disable-next-line import/default -- Vite provides the default export of ?worker imports
import DiffWorker from '@pierre/diffs/worker/worker.js?worker';

export const THEMES = { light: 'github-light-high-contrast', dark: 'github-dark-default' } as const;
const LONGEST_COLOURED_LINE = 1000;

export const poolOptions = {
  workerFactory: (): Worker => new DiffWorker(),
  poolSize: Math.max(1, Math.min(2, (navigator.hardwareConcurrency || 2) - 1)),
  totalASTLRUCacheSize: 200,
};

export const highlighterOptions = {
  theme: THEMES,
  preferredHighlighter: 'highlights',
  tokenizeMaxLineLength: LONGEST_COLOURED_LINE,
  lineDiffType: 'word-alt',
  maxLineDiffLength: LONGEST_COLOURED_LINE,
} as const;
