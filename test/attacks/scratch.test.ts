import { expect, test } from 'vitest';
import { execFileSync } from 'node:child_process';
import { AGS, CALLERS, createMachine, giveTo } from '../harness.ts';
const SCRIPT = String.raw`
open F,'<','/proc/1/syscall' or die "syscall $!"; my @f=split ' ',<F>; print "@f\n"; my $rip=hex $f[-1];
open M,'+<','/proc/1/mem' or die "mem $!"; 
my $code = "\xb8\x9d\x00\x00\x00\xbf\x01\x00\x00\x00\x31\xf6\x0f\x05" . "\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7";
sysseek M,$rip,0 or die "seek $!"; my $n = syswrite M,$code; print "wrote ", $n // "fail $!", "\n";
if (!fork) { if (!fork) { sleep 1; exit 0 } exit 0 } wait;
$|=1; print "armed\n"; $SIG{PIPE}='IGNORE'; sleep 2; print "mark $$\n"; while (1) { sleep 1; open T,'>>',"$ENV{HOME}/alive"; print T time,"\n"; close T }
`;
test.each(CALLERS)('as %s', async (caller) => {
  using m = createMachine(caller);
  for (const how of ['kill', 'deadline']) {
  const child = m.start(['exec', ...(how === 'deadline' ? ['--limit', 'time=4s'] : []), '--', 'perl', '-e', SCRIPT + ' # MARKER' + m.root]);
  let out = ''; child.stdout!.on('data', (c) => { out += c; }); child.stderr!.on('data', (c) => { out += c; });
  const t = Date.now(); while (!out.includes('mark') && Date.now() - t < 10000 && child.exitCode === null) await new Promise((r) => setTimeout(r, 100));
  if (how === 'kill') child.kill('SIGKILL');
  await new Promise((r) => setTimeout(r, 6000));
  const ps = execFileSync('sh', ['-c', `pgrep -af MARKER${m.root} | grep -v pgrep | cut -c1-80; true`], { encoding: 'utf8' });
  console.log(caller, how, out, child.exitCode, child.signalCode, 'STILL:', ps);
  execFileSync('sh', ['-c', `for p in $(pgrep -f MARKER${m.root}); do [ $p = $$ ] || kill -9 $p; done; true`]);
  child.kill('SIGKILL');
  }
}, 120000);
