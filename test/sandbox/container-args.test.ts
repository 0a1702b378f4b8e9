// test/sandbox/container-args.test.ts: every option of `docker run` and `podman run` for one sandbox. A new option shows here first; whether it
// protects is proven by test/attacks/mutation/container-mutation.proof.test.ts.
import { describe, expect, test } from 'vitest';
import { HOST_ROOT, hostPath, sandboxPath, type SandboxSpec } from '../../src/protocol/spec.ts';
import { agentArgs, common, pauseArgs, type ContainerInput } from '../../src/sandbox/container/container-args.ts';
import { ENGINE_KINDS, PROXY_VARIABLES, type EngineName } from '../../src/sandbox/engine/engine-kinds.ts';

const GiB = 2 ** 30;

const SPEC: SandboxSpec = {
  hostname: 'sandbox',
  root: HOST_ROOT,
  user: { uid: 1001, gid: 1001, name: 'agent' },
  mounts: [
    { kind: 'bind', from: hostPath('/usr'), to: sandboxPath('/usr'), writable: false, why: 'the system' },
    { kind: 'bind', from: hostPath('/run/etc'), to: sandboxPath('/etc'), writable: false, why: 'settings' },
    { kind: 'tmpfs', to: sandboxPath('/tmp'), bytes: GiB, mode: '1777', why: 'temporary files' },
    { kind: 'bind', from: hostPath('/run/home'), to: sandboxPath('/home/dev'), writable: true, why: 'its home' },
  ],
  env: {},
  workdir: sandboxPath('/home/dev'),
  network: { kind: 'gateway', listeners: [], reach: false },
  limits: {
    processes: 512,
    memoryBytes: 4 * GiB,
    openFiles: 1024,
    fileBytes: GiB,
    diskBytes: GiB,
    tmpBytes: GiB,
    cpuSeconds: null,
    wallSeconds: null,
    cpus: 1.5,
  },
  kernel: { ptrace: false, unixSockets: true },
  runtime: null,
};

function input(engine: EngineName): ContainerInput {
  return {
    kind: ENGINE_KINDS[engine],
    spec: SPEC,
    source: (mount) => ('from' in mount ? mount.from : `/run/made${mount.to}`),
    overlays: null,
    name: 'ags-task-1',
    run: 'task',
    owner: 'machine.0 7:42',
    rootless: engine === 'podman',
    counts: true,
    image: 'root-image',
    rootImage: 'root-image',
    perl: ['/usr/bin/perl'],
    interpreter: null,
    arch: 'x64',
    limitArgv: ['/usr/bin/prlimit', '--core=1', '--nofile=1024', '--'],
    ipv6: true,
    meeting: { gate: '/run/meet/gate', pause: '/run/meet/pause' },
  };
}

/** One option in each line, without the program and the variables that are taken from it. */
function options(args: readonly string[]): string[] {
  const lines = args
    .slice(1, args.indexOf('-e'))
    .reduce<string[]>(
      (done, word) => (word.startsWith('--') ? [...done, word] : [...done.slice(0, -1), `${done.at(-1)} ${word}`]),
      [],
    );
  return lines.filter((line) => !PROXY_VARIABLES.includes(line.replace('--env ', '')));
}

const both = (engine: EngineName): Record<'agent' | 'pause', string[]> => ({
  agent: options(agentArgs(input(engine))),
  pause: options(pauseArgs(input(engine))),
});

test('the client of Docker puts no proxy of its own into a container', () => {
  const args = common(input('docker'), 'ags-task-1-agent').join(' ');
  expect(PROXY_VARIABLES.filter((name) => !args.includes(`--env ${name} `))).toEqual([]);
});

describe('what an engine is told', () => {
  test('Docker', () => {
    expect(both('docker')).toMatchInlineSnapshot(`
      {
        "agent": [
          "--detach",
          "--rm",
          "--pull never",
          "--name ags-task-1-agent",
          "--label ags.run=task",
          "--label ags.owner=machine.0 7:42",
          "--log-driver none",
          "--read-only",
          "--cap-drop ALL",
          "--security-opt no-new-privileges",
          "--ipc none",
          "--cgroupns private",
          "--oom-score-adj 800",
          "--tmpfs /sys:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--network container:ags-task-1-net",
          "--user 1001:1001",
          "--pids-limit 512",
          "--memory 4294967296",
          "--memory-swap 4294967296",
          "--cpus 1.5",
          "--ulimit core=1:1",
          "--ulimit nofile=1024:1024",
          "--mount type=bind,src=/usr,dst=/usr,readonly",
          "--mount type=bind,src=/run/etc,dst=/etc,readonly",
          "--tmpfs /tmp:rw,exec,nosuid,nodev,size=1073741824,mode=1777,uid=1001,gid=1001",
          "--mount type=bind,src=/run/home,dst=/home/dev",
          "--mount type=bind,src=/run/etc/hosts,dst=/etc/hosts,readonly",
          "--mount type=bind,src=/run/etc/hostname,dst=/etc/hostname,readonly",
          "--mount type=bind,src=/run/etc/resolv.conf,dst=/etc/resolv.conf,readonly",
          "--mount type=bind,src=/run/meet/gate,dst=/sys/ags,readonly",
          "--workdir /",
          "--entrypoint /usr/bin/perl root-image",
        ],
        "pause": [
          "--detach",
          "--rm",
          "--pull never",
          "--name ags-task-1-net",
          "--label ags.run=task",
          "--label ags.owner=machine.0 7:42",
          "--log-driver none",
          "--read-only",
          "--cap-drop ALL",
          "--security-opt no-new-privileges",
          "--ipc none",
          "--cgroupns private",
          "--oom-score-adj 800",
          "--tmpfs /sys:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--network none",
          "--hostname sandbox",
          "--dns 127.0.0.1",
          "--sysctl net.ipv4.ip_unprivileged_port_start=1024",
          "--sysctl net.ipv6.conf.lo.disable_ipv6=0",
          "--user 0:0",
          "--cap-add NET_BIND_SERVICE",
          "--cap-add SETUID",
          "--cap-add SETGID",
          "--pids-limit 8",
          "--memory 64m",
          "--mount type=bind,src=/usr,dst=/usr,readonly",
          "--mount type=bind,src=/run/meet/pause,dst=/sys/ags,readonly",
          "--workdir /",
          "--entrypoint /usr/bin/perl root-image",
        ],
      }
    `);
  });

  test('Podman', () => {
    expect(both('podman')).toMatchInlineSnapshot(`
      {
        "agent": [
          "--detach",
          "--rm",
          "--pull never",
          "--name ags-task-1-agent",
          "--label ags.run=task",
          "--label ags.owner=machine.0 7:42",
          "--log-driver none",
          "--read-only-tmpfs=false",
          "--passwd=false",
          "--userns keep-id",
          "--read-only",
          "--cap-drop ALL",
          "--security-opt no-new-privileges",
          "--ipc none",
          "--cgroupns private",
          "--oom-score-adj 800",
          "--tmpfs /sys:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--network host",
          "--hostname sandbox",
          "--user 1001:1001",
          "--pids-limit 512",
          "--memory 4294967296",
          "--memory-swap 4294967296",
          "--cpus 1.5",
          "--ulimit core=1:1",
          "--ulimit nofile=1024:1024",
          "--mount type=bind,src=/usr,dst=/usr,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/etc,dst=/etc,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/made/tmp,dst=/tmp,nosuid,nodev",
          "--mount type=bind,src=/run/home,dst=/home/dev,nosuid,nodev",
          "--mount type=bind,src=/run/etc/hosts,dst=/etc/hosts,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/etc/hostname,dst=/etc/hostname,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/etc/resolv.conf,dst=/etc/resolv.conf,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/meet/gate,dst=/sys/ags,readonly,nosuid,nodev",
          "--workdir /",
          "--entrypoint /usr/bin/perl root-image",
        ],
        "pause": [
          "--detach",
          "--rm",
          "--pull never",
          "--name ags-task-1-net",
          "--label ags.run=task",
          "--label ags.owner=machine.0 7:42",
          "--log-driver none",
          "--read-only-tmpfs=false",
          "--passwd=false",
          "--userns keep-id",
          "--read-only",
          "--cap-drop ALL",
          "--security-opt no-new-privileges",
          "--ipc none",
          "--cgroupns private",
          "--oom-score-adj 800",
          "--tmpfs /sys:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /sys/fs/cgroup:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--tmpfs /dev/mqueue:ro,nosuid,nodev,noexec,size=4k,mode=0555",
          "--network none",
          "--hostname sandbox",
          "--sysctl net.ipv4.ip_unprivileged_port_start=1024",
          "--sysctl net.ipv6.conf.lo.disable_ipv6=0",
          "--user 0:0",
          "--cap-add NET_BIND_SERVICE",
          "--cap-add SETUID",
          "--cap-add SETGID",
          "--pids-limit 8",
          "--memory 64m",
          "--mount type=bind,src=/usr,dst=/usr,readonly,nosuid,nodev",
          "--mount type=bind,src=/run/meet/pause,dst=/sys/ags,readonly,nosuid,nodev",
          "--workdir /",
          "--entrypoint /usr/bin/perl root-image",
        ],
      }
    `);
  });
});
