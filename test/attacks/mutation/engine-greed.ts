// test/attacks/mutation/engine-greed.ts: containers of nested Docker that take more than the task has. They need a daemon with small
// limits, so `ags doctor --attack` does not try them.
import type { Attack } from '../../../src/attack/table/attack.ts';
import { fromContainer } from '../../../src/attack/table/engine.ts';

const greedy = (id: string, what: string, program: string, expect: readonly string[]): Attack => ({
  id,
  area: 'engine',
  references: ['A17'],
  what,
  needs: 'engine',
  perl: fromContainer('', program),
  expect,
});

export const ENGINE_GREED: readonly Attack[] = [
  greedy(
    'engine-fork-bomb',
    'have more processes than the task was given, in a container',
    "my @all; for (1 .. 400) { my $pid = fork; last unless defined $pid; if (!$pid) { sleep 60; exit } push @all, $pid } line(@all == 400 ? 'got it' : 'refused'); kill 9, @all",
    ['refused'],
  ),
  greedy(
    'engine-memory',
    'have more memory than the task was given, in a container',
    "line('began'); my $size = 600 << 20; my $all = 'x' x $size; line('got it') if length $all",
    // The kernel ends it in the middle.
    ['began', 'was cut off', 'ended with status 137'],
  ),
];
