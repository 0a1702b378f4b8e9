// scripts/sandbox-works.d.mts: the types of sandbox-works.mjs, for the tests.
export function sentence(json: string): string;
