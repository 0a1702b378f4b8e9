/** In a source file: a fragment that identifies one place, and its replacement. */
export type Piece = readonly [file: string, from: string, to: string];

export interface Found {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export function openSource(root: string): {
  readonly files: readonly string[];
  read(path: string): string;
  file(name: string): string;
  find(name: string, from: string): Found;
  findAll(name: string, from: string): readonly Found[];
  edit(pieces: readonly Piece[]): ReadonlyMap<string, string>;
  lasts(piece: Piece): boolean;
  strangers(piece: Piece): readonly string[];
};
export function findTests(root: string, name: string): readonly string[];
export function replaceIn(text: string, from: string, to: string, path: string): string;
