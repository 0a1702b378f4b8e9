/** Builds dist/ if the source has changed since. */
export function ensureBuild(quiet: boolean): Promise<void>;
