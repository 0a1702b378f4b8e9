// test/attacks/attack.ts: one attempt to break out, as data: what is tried, the program that tries it, and the only answers
// that mean it failed. The tables of them are plain values, so that they can be run wherever a sandbox can.
// Invariant: silence is not success. An attempt that gives no answer, or one that is not listed, counts as a breach.

export interface Attack {
  /** As in the list of attacks; several attempts may belong to one. */
  readonly id: string;
  /** What is tried, in words: "make a block device". */
  readonly what: string;
  /** Perl, with the helpers of batch.ts and the places of the host in %V. */
  readonly perl: string;
  /** Every line of the answer must be one of these. A line may begin with a label: "/dev/sda = ENOENT". */
  readonly expect: readonly string[];
}

/** What the programs must know about the host: places and numbers, never the secrets themselves. */
export interface Places {
  /** Directory of another project. */
  readonly SIBLING: string;
  /** A file in the host's /tmp. */
  readonly HOST_TMP: string;
  /** A tool directory of the home, mounted read-only, with the file "tool", sockets and a pipe ("agent.*") in it. */
  readonly TOOLS: string;
  /** The home's own directory on the host, where sockets and secrets are. */
  readonly HOME: string;
  readonly PROJECT: string;
  /** State directory of ags. */
  readonly STATE: string;
  /** Names of Unix sockets, separated by blanks: stream and datagram. */
  readonly STREAMS: string;
  readonly DATAGRAMS: string;
  /** Without the leading zero byte; the datagram socket has ".dgram" at its end. */
  readonly ABSTRACT: string;
  /** On 127.0.0.1 and on every address of the host. */
  readonly LOOPBACK_PORT: string;
  readonly ANY_PORT: string;
  /** Addresses of the host, separated by blanks. */
  readonly ADDRESSES: string;
  /** SysV key of a shared memory segment, a message queue and a semaphore. */
  readonly IPC_KEY: string;
  /** Name of a POSIX message queue, without the slash. */
  readonly QUEUE: string;
  /** A process of the host that belongs to the user whom the sandbox runs as. */
  readonly VICTIM: string;
  readonly HOSTNAME: string;
}

/** The lines that are no listed answer; empty when the attack failed as it must. */
export function breaches(attack: Attack, answer: string): string[] {
  const lines = answer.split('\n').filter((line) => line !== '');
  if (lines.length === 0) return ['(no answer)'];
  return lines.filter(
    (line) => !attack.expect.includes(line.slice(line.lastIndexOf(' = ') < 0 ? 0 : line.lastIndexOf(' = ') + 3)),
  );
}
