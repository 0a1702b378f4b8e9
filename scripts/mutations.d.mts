import type { Piece } from './anchors.mjs';

export const MUTATIONS: readonly { readonly name: string; readonly piece: Piece; readonly tests: readonly string[] }[];
