// lib/process/proc-stat.ts: the fields of /proc/<pid>/stat from the third on: state, parent, group, session, terminal, foreground group;
// the 20th of them is the start time.

// A program's name may contain spaces and brackets; the fields begin after the last closing bracket.
export function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
