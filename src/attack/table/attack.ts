// attack/table/attack.ts: one attempt to break out, as data: what is tried, how, and the only answers that mean it failed. `ags doctor
// --attack` and the tests of every backend run the table of all attempts (table.ts), and SECURITY.md names them.
// Invariant: silence is not success. No answer, or one that is not listed, counts as a breach.

export const AREAS = {
  filesystem: 'Files',
  kernel: 'Processes and kernel',
  network: 'Network',
  dns: 'Names',
  git: 'Git',
  merge: 'Bringing work out',
  credentials: 'Credentials',
  resources: 'Resources',
  tasks: 'Task against task',
  services: 'Services',
  engine: 'Docker inside',
} as const;
export type Area = keyof typeof AREAS;

interface Attempt {
  /** Never changes: SECURITY.md and reports name it. */
  readonly id: string;
  readonly area: Area;
  /** The attempt in words: "make a block device". */
  readonly what: string;
  /** Numbers of our list of attacks (A1), published flaws, and names of the class. An attempt tries the kind of a flaw, not the flaw itself. */
  readonly references: readonly string[];
  /** The best possible verdict; without it: refused. "limited": possible up to a bound. */
  readonly best?: 'limited';
}

/** A program inside. */
export interface Attack extends Attempt {
  /** Perl, with the helpers of batch.ts and the places of the host in %V. */
  readonly perl: string;
  /** Every line of the answer must be one of these. A line may begin with a label: "/dev/sda = ENOENT". */
  readonly expect: readonly string[];
  /** Whole lines that are accepted too in a container. */
  readonly inContainer?: RegExp;
  /** Why the attempt proves nothing over an image: the image itself contains what is tried. */
  readonly notOverImage?: string;
  /** Requirements: allowed hosts, misleading names and a secret (attacked-network.ts); a service of ours; or nested Docker. */
  readonly needs?: 'origin' | 'services' | 'engine';
}

/** An attempt on the user who processes an agent's work. */
export interface GitAttack extends Attempt {
  /** For sh, in the agent's workspace. `$RAN` is a directory of the host: a file there shows that the host ran or wrote something. */
  readonly sh: string;
  /** Sentences about what went wrong; empty if the attack failed as it must. */
  readonly judge: (after: Aftermath) => readonly string[];
}

/** The user's repository after the work was brought out, shown and merged. */
export interface Aftermath {
  /** Names in the directory that nothing may write to. */
  readonly ran: readonly string[];
  /** Changes in the user's own files and refs, besides the branch of the task. */
  readonly changed: readonly string[];
  /** The tree on the branch of the task: "mode type id\tpath". */
  readonly tree: readonly string[];
  /** The diff as shown. */
  readonly diff: string;
  /** Subjects of the commits between the base and the branch of the task. */
  readonly commits: readonly string[];
  /** The files that a merge without options took, and those it left out. */
  readonly merged: readonly string[];
  readonly left: readonly string[];
  /** Files in the user's project afterwards: "mode links path". */
  readonly files: readonly string[];
}

/** A program that exceeds its limits, in its own sandbox with small limits. */
export interface GreedAttack extends Attempt {
  /** With the names of the configuration. */
  readonly limits: Readonly<Record<string, string>>;
  /** Prints "got it" if nothing stopped it, and "refused" with the error if more was refused. */
  readonly perl: string;
  /** Everything that may have stopped it. Any other end proves nothing about the limit. */
  readonly heldBy: {
    /** Errors that the program itself may see. */
    readonly refused?: readonly string[];
    /** Limits that may end it, by the words that name them: "limits.disk". */
    readonly ended?: readonly string[];
    /** The kernel may kill it. On a remote machine the reason stays unknown. */
    readonly killed?: boolean;
    /** The last output of an interpreter that ends by itself because of the limit. */
    readonly lastWords?: string;
  };
}

export type AnyAttack = Attack | GitAttack | GreedAttack;

/** What the programs must know about the host: places and numbers, never the secrets themselves. */
export interface Places {
  /** Directory of another project, beside this one. */
  readonly SIBLING: string;
  /** A file in the host's /tmp. */
  readonly HOST_TMP: string;
  /** A tool directory of the home, mounted read-only, with the file "tool", sockets and a pipe ("agent.*") in it. Empty: over an image. */
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
  /** A process of the host that belongs to the user that the sandbox runs as. */
  readonly VICTIM: string;
  readonly HOSTNAME: string;
  /** Names of variables that the configuration gives to every sandbox, separated by blanks. */
  readonly VARIABLES: string;
  /** Paths that the configuration mounts, separated by blanks. */
  readonly SHOWN: string;
  /** Off: there is no listener, and finding none is no breach. */
  readonly NETWORK: 'on' | 'off';
  /** Ports inside: the proxy, the name service, the listeners at the addresses of names, and the endpoints of secrets. */
  readonly LISTENER: string;
  readonly NAMES: string;
  readonly TLS_LISTENER: string;
  readonly WEB_LISTENER: string;
  readonly ENDPOINT: string;
  /** An allowed host, over HTTP on a port, that echoes what it receives. Empty: there is none. */
  readonly ECHO: string;
  /** The port of the host that the secret is for. */
  readonly SECURE: string;
  /** The address of a service of ours, which runs what it receives (table-services.ts). Empty: there is none. */
  readonly SERVICE: string;
  /** The address of nested Docker. Empty: there is none. */
  readonly ENGINE: string;
  /** The domain whose names lead where no sandbox may go (see origin.ts). */
  readonly DOMAIN: string;
}

/** The lines that are not listed answers; empty if the attack failed as it must. */
export function breaches(attack: Attack, answer: string, inContainer = false): string[] {
  const lines = answer.split('\n').filter((line) => line !== '');
  if (lines.length === 0) return ['(no answer)'];
  return lines.filter(
    (line) =>
      !attack.expect.includes(line.slice(line.lastIndexOf(' = ') < 0 ? 0 : line.lastIndexOf(' = ') + 3)) &&
      !(inContainer && attack.inContainer?.test(line) === true),
  );
}

/** Ports in every sandbox. */
export const LISTENERS = {
  LISTENER: '3128',
  NAMES: '53',
  TLS_LISTENER: '443',
  WEB_LISTENER: '80',
  ENDPOINT: '3129',
} as const;
