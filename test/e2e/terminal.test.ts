import { expect, test } from 'vitest';
import { CALLERS, createMachine } from '../harness.ts';
import { openScreen } from './screen.ts';

test.each(CALLERS)('as %s: x', async (caller) => {
  using machine = createMachine(caller);
  using screen = await openScreen(machine);
  for (const line of ["ags exec -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?; tty; stty size'", "ags exec -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?' | cat", "ags exec -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?' </dev/null", "ags exec -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?' 2>/dev/null", "ags exec -- sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -t 2; echo $?' </dev/null 2>&1 | cat"]) console.log(JSON.stringify(await screen.run(line)));
  console.log(screen.text());
}, 120000);
