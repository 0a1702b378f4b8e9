// scripts/needs.d.mts: the types of needs.mjs, for the tests.
export interface TestFile {
  readonly file: string;
  readonly tier: string;
  readonly needs: readonly string[];
  readonly uses: readonly string[];
  readonly callers: boolean;
}
export function tierOf(file: string): string;
export function allTestFiles(): string[];
export function describeFile(file: string): TestFile;
export function declared(text: string, word: 'needs' | 'uses'): string[];
