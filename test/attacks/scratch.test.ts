import { expect, test } from 'vitest';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync, symlinkSync, openSync, readFileSync, closeSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AGS, CALLERS, createMachine, giveTo } from '../harness.ts';
const id = (m: any) => (process.getuid?.() === 0 ? { uid: m.uid, gid: m.uid } : {});
test.each(CALLERS)('as %s', async (caller) => {
  const log = (...a: unknown[]) => console.log(caller, ...a);
  {
    using m = createMachine(caller);
    writeFileSync(join(m.home, 'data.txt'), 'DATA\n'); writeFileSync(join(m.home, 'log.txt'), 'LOG before\n'); 
    writeFileSync(join(m.home, 'secret'), 'DIRSECRET\n'); giveTo(m.home, m.uid);
    const r = spawnSync('bash', ['-c', `exec ${process.execPath} ${AGS} exec -- sh -c 'echo PWNED > /proc/self/fd/0; cat /proc/self/fd/1 >&2' < ${m.home}/data.txt >> ${m.home}/log.txt`], { cwd: m.project, env: m.env, ...id(m), encoding: 'utf8' });
    log('1 stdin reopen:', readFileSync(join(m.home, 'data.txt'), 'utf8'), 'err', r.stderr);
    const r2 = spawnSync('bash', ['-c', `exec ${process.execPath} ${AGS} exec -- sh -c 'ls -la /proc/self/fd/0/; cat /proc/self/fd/0/secret; echo X > /proc/self/fd/0/planted' < ${m.home}`], { cwd: m.project, env: m.env, ...id(m), encoding: 'utf8' });
    log('12 dir stdin:', r2.stdout, r2.stderr);
  }
  {
    using m = createMachine(caller);
    const t = Date.now();
    const r = await m.ags(['exec', '--limit', 'disk=50m', '--limit', 'time=20s', '--', 'sh', '-c', 'i=0; while [ $i -lt 30 ]; do head -c 10000000 /dev/zero > $HOME/f$i; i=$((i+1)); sleep 0.2; done; du -sm $HOME']);
    log('2 disk', r.stdout, r.stderr, Date.now() - t);
  }
  {
    using m = createMachine(caller);
    m.write('.aws/config', 'tracked'); m.git('add', '-A'); m.git('commit', '-qm', 'x'); m.write('.aws/credentials', 'AWSSECRET'); m.write('.ssh/known_hosts', 'x'); m.git('add', '-f', '.ssh'); m.write('.ssh/id_ed25519', 'SSHSECRET');
    const r = await m.ags(['exec', '--', 'sh', '-c', 'cat .aws/credentials .ssh/id_ed25519']);
    log('3 tracked dir', r.stdout, r.stderr);
  }
  {
    using m = createMachine(caller);
    for (const [n, dir] of [['nm', join(m.project, 'node_modules/x')], ['tool', join(m.home, '.local/bin')], ['proj', m.project + '/sub'], ['venv', join(m.project, '.venv')]] as const) { mkdirSync(dir, { recursive: true }); giveTo(m.home, m.uid); }
    const srv = spawn('perl', ['-MIO::Socket::UNIX', '-e', 'for my $p (@ARGV) { my $s = IO::Socket::UNIX->new(Local=>$p, Listen=>5) or die "$p $!"; push @s,$s; chmod 0777,$p; } $|=1; print "ready\n"; use IO::Select; my $sel=IO::Select->new(@s); while(1){ for my $s ($sel->can_read){ my $c=$s->accept; print $c "HELLO from host\n"; close $c } }', join(m.project, 'node_modules/x/a.sock'), join(m.home, '.local/bin/b.sock'), join(m.project, 'sub/c.sock'), join(m.project, '.venv/d.sock')], { ...id(m), stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((r) => srv.stdout.once('data', r));
    execFileSync('mkfifo', [join(m.home, '.local/bin/fifo'), join(m.project, 'fifo')], id(m));
    const child = m.start(['exec', '--', 'sh', '-c', `echo started; read x; for p in node_modules/x/a.sock $HOME/.local/bin/b.sock sub/c.sock .venv/d.sock sub/late.sock; do perl -MIO::Socket::UNIX -e '$s=IO::Socket::UNIX->new(Peer=>$ARGV[0]) or do { print "$ARGV[0]: $!\n"; exit }; print "$ARGV[0]: ", scalar <$s>' $p; done; ls sub; perl -e 'use Fcntl; sysopen(F,$ARGV[0],O_WRONLY|O_NONBLOCK) ? print "fifo opened $ARGV[0]\n" : print "fifo $!\n"' $HOME/.local/bin/fifo;  perl -e 'use Fcntl; sysopen(F,$ARGV[0],O_WRONLY|O_NONBLOCK) ? print "fifo opened $ARGV[0]\n" : print "fifo $!\n"' fifo`]);
    const rd = spawn('sh', ['-c', `exec cat ${m.home}/.local/bin/fifo ${m.project}/fifo`], { ...id(m), stdio: 'ignore' });
    const rd2 = spawn('sh', ['-c', `exec cat ${m.project}/fifo`], { ...id(m), stdio: 'ignore' });
    let out = ''; child.stdout!.on('data', (c) => { out += c; }); child.stderr!.on('data', (c) => { out += c; });
    while (!out.includes('started')) await new Promise((r) => setTimeout(r, 50));
    const srv2 = spawn('perl', ['-MIO::Socket::UNIX', '-e', 'my $s = IO::Socket::UNIX->new(Local=>$ARGV[0], Listen=>5); $|=1; print "ready\n"; while(my $c=$s->accept){ print $c "HELLO late\n" }', join(m.project, 'sub/late.sock')], { ...id(m), stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((r) => srv2.stdout.once('data', r));
    child.stdin!.write('go\n'); child.stdin!.end();
    await new Promise((r) => child.on('close', r));
    log('4/5 sockets', out); srv.kill(); srv2.kill(); rd.kill(); rd2.kill();
  }
  {
    using m = createMachine(caller);
    writeFileSync(join(m.home, 'secret'), 'HOMESECRET\n'); mkdirSync(join(m.home,'.ssh')); writeFileSync(join(m.home, '.ssh/id_ed25519'), 'KEY\n'); giveTo(m.home, m.uid);
    writeFileSync(join(m.project, '.git/objects/info/alternates'), '../../../../\n');
    symlinkSync('../../../.ssh/id_ed25519', join(m.project, '.git/MERGE_MSG'));
    const r = await m.ags(['exec', '--', 'sh', '-c', 'cat .git/objects/info/alternates; ls -la /run/ags/objects/*/ ; cat /run/ags/objects/1/secret .git/MERGE_MSG']);
    log('6 alternates', r.stdout.slice(-600), r.stderr);
    rmSync(join(m.project, '.git/objects/info/alternates'));
    execFileSync('mv', [join(m.project, '.git/objects'), join(m.home, 'objs')]); symlinkSync('../../../', join(m.project, '.git/objects'));
    const r2 = await m.ags(['exec', '--', 'sh', '-c', 'ls -a /run/ags/objects/0/ ; cat /run/ags/objects/0/secret']);
    log('6b objects symlink', r2.stdout.slice(-600), r2.stderr);
  }
  {
    using m = createMachine(caller);
    mkdirSync(join(m.home, 'code/sibling')); writeFileSync(join(m.home, 'code/sibling/private.txt'), 'SIBLING\n'); giveTo(m.home, m.uid);
    execFileSync('git', ['init', '-q'], { cwd: join(m.home, 'code/sibling'), ...id(m), env: m.env });
    execFileSync('git', ['add', '-A'], { cwd: join(m.home, 'code/sibling'), ...id(m), env: m.env });
    m.git('config', 'core.worktree', '../..');
    const r = await m.ags(['exec', '--', 'sh', '-c', 'pwd; cat ../sibling/private.txt; git rev-parse --show-toplevel']);
    log('7 worktree', r.code, r.stdout, r.stderr);
    execFileSync('mv', [join(m.project, '.git'), join(m.home, 'oldgit')]); writeFileSync(join(m.project, '.git'), 'gitdir: ../sibling/.git\n'); giveTo(m.home, m.uid);
    const r2 = await m.ags(['exec', '--', 'sh', '-c', 'git ls-files -s; git cat-file blob :private.txt']);
    log('7b gitfile', r2.code, r2.stdout, r2.stderr);
  }
  {
    using m = createMachine(caller);
    const r = await m.ags(['exec', '--limit', 'memory=256m', '--limit', 'time=20s', '--', 'perl', '-e', 'use IPC::SysV qw(IPC_PRIVATE S_IRUSR S_IWUSR); for (1..12) { my $id = shmget(IPC_PRIVATE, 52428800, 0600) // die "shmget $!"; shmwrite($id, "x" x 52428800, 0, 52428800) or die $!; print "$_ "; } sleep 3; print "held\n"; ']);
    log('8 sysv', r.code, r.stdout, r.stderr);
  }
}, 120000);
