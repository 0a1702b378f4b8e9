import { test } from 'vitest';
import { createMachine } from '../harness.ts';
import { createVictims } from './victims.ts';
import { batchInput, batchProgram } from './batch.ts';
import { runMutant } from './mutant.ts';
import { FILE_ATTACKS } from './table-files.ts';
import { IDENTITY_ATTACKS } from './table-identity.ts';
import { KERNEL_ATTACKS } from './table-kernel.ts';
import { NETWORK_ATTACKS } from './table-network.ts';
const A = [...FILE_ATTACKS, ...KERNEL_ATTACKS, ...NETWORK_ATTACKS, ...IDENTITY_ATTACKS];
test('x', async () => {
  let t = Date.now(); const lap = (w: string) => { console.log(w, Date.now() - t); t = Date.now(); };
  using m = createMachine('user'); lap('machine');
  await using v = await createVictims(m); lap('victims');
  const prog = batchProgram(process.arch).replace('for my $index (0 .. $#in) {', 'use Time::HiRes; my $T=Time::HiRes::time(); for my $index (0 .. $#in) { my $n=Time::HiRes::time(); print STDERR "T ", $index-1, " ", int(1000*($n-$T)), "\n"; $T=$n;');
  const r = await runMutant(m, v, {}, ['perl', '-e', prog], batchInput(A, v.places)); lap('run');
  v.touched(); lap('touched');
  console.log(r.stderr.split('\n').filter((l) => l.startsWith('T ')).map((l) => l.split(' ')).filter((l) => Number(l[2]) > 25).map((l) => `${l[2]} ${A[Number(l[1])]?.what}`).join('\n'));
}, 60000);
