// lib/process/proc-stat.ts: the fields of /proc/<pid>/stat, from the third one on: state, parent, group, session, terminal, foreground
// group; the 20th of them is the start time.

// The name of a program may hold spaces and brackets; the fields begin after the last closing one.
export function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
