// review/folded.ts: decides which changes are shown folded, because reviewers do not read them line by line.
const LOCK_FILES =
  /(^|\/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|Gemfile\.lock|poetry\.lock|uv\.lock|Pipfile\.lock|composer\.lock|go\.sum|flake\.lock|mix\.lock|Podfile\.lock|packages\.lock\.json)$/;
const GENERATED = /(\.min\.(js|css)|\.map|\.snap|\.pb\.go|_pb2\.py|\.generated\.\w+)$|(^|\/)(dist|build|vendor)\//;
const MANY_LINES = 800;

/** The reason in a word or two; null if the change is shown unfolded. */
export function foldedBecause(file: {
  readonly path: string;
  readonly kind: string;
  readonly added: number | null;
  readonly removed: number | null;
}): string | null {
  if (LOCK_FILES.test(file.path)) return 'lock file';
  if (GENERATED.test(file.path)) return 'generated';
  if (file.added === null || file.removed === null) return 'not text';
  if (file.kind === 'deleted') return 'deleted';
  if (file.kind === 'renamed' && file.added + file.removed === 0) return 'only renamed';
  return file.added + file.removed > MANY_LINES ? 'large' : null;
}
