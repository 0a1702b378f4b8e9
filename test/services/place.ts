// test/services/place.ts: projects with services.
import { createMachine, type Caller, type Machine } from '../harness.ts';

export const SEED =
  'create table item(id int primary key, name text);\ninsert into item values (1, $$one$$), (2, $$two$$);\n';

/** `services` are lines of YAML, one for each. */
export function withServices(
  caller: Caller,
  services: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Machine {
  return createMachine(caller, { files: { 'README.md': '# project\n', 'ags.yaml': yaml(services), ...files } });
}

export function yaml(services: readonly string[]): string {
  return `services:\n${services.map((line) => `  ${line}\n`).join('')}`;
}
