// test/attacks/left-open.test.ts: descriptors that the caller of ags left open are closed inside; `ags doctor --attack` would notice.
// needs: sandbox
import { expect, test } from 'vitest';
import { FIND_LEFT_OPEN } from '../../src/attack/table/neighbours.ts';
import { makeHostContext } from '../../src/cli/make-context.ts';
import { startNeighbour } from '../../src/attack/inside.ts';
import { openStage, type AttackedProject } from '../../src/attack/attacked-project.ts';
import { AGS, createMachine } from '../harness.ts';

/** A stand-in for ags that closes no descriptor. */
const CARELESS = ['perl', '-e', `$| = 1; ${FIND_LEFT_OPEN} print "ready\\n"; 1 while sysread STDIN, my $more, 64`];

test('ags closes descriptors that its caller left open, and an open one would be noticed', async () => {
  using machine = createMachine(process.getuid?.() === 0 ? 'root' : 'user');
  const self = [process.execPath, AGS];
  await using stage = await openStage({ ...makeHostContext({ ...machine.env }), cwd: machine.project, self }, {});
  expect(await foundBy(stage)).toEqual([]);
  expect(await foundBy({ ...stage, context: { ...stage.context, self: CARELESS } })).toEqual(
    [40, 9].map((fd) => `descriptor ${fd} = left open by the caller, and read`),
  );
});

async function foundBy(stage: AttackedProject): Promise<readonly string[]> {
  await using neighbour = await startNeighbour(stage);
  return neighbour.found;
}
