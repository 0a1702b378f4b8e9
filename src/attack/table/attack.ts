// attack/table/attack.ts: one attempt to break out, as data: what is tried, how, and the only answers that mean it failed. One table
// of them (table.ts) is what `ags doctor --attack` runs, what the tests of every backend run, and what SECURITY.md names.
// Invariant: silence is not success. An attempt that gives no answer, or one that is not listed, counts as a breach.

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
  /** Its name for ever: SECURITY.md and reports name it. */
  readonly id: string;
  readonly area: Area;
  /** What is tried, in words: "make a block device". */
  readonly what: string;
  /** Numbers of our list of attacks (A1), published flaws and names of the class. Of a flaw, what is tried here is its kind alone. */
  readonly references: readonly string[];
  /** The best that can be said of it: refused, or possible up to a bound. Refused if not given. */
  readonly best?: 'limited';
}

/** A program inside. */
export interface Attack extends Attempt {
  /** Perl, with the helpers of batch.ts and the places of the host in %V. */
  readonly perl: string;
  /** Every line of the answer must be one of these. A line may begin with a label: "/dev/sda = ENOENT". */
  readonly expect: readonly string[];
  /** Whole lines that mean the same where an engine has built the sandbox. */
  readonly inContainer?: RegExp;
  /** Why it says nothing over an image: what is tried is there by the image's own making. */
  readonly notOverImage?: string;
  /** Makes sense only with hosts that rules allow, names that lead astray and a secret (attacked-network.ts); with a service of ours; or with an engine inside. */
  readonly needs?: 'origin' | 'services' | 'engine';
}

/** What the user does with the work of an agent that prepared it for this moment. */
export interface RoadAttack extends Attempt {
  /** For sh, in the agent's workspace. `$RAN` is a directory of the host: whatever appears there was run or written by the host. */
  readonly sh: string;
  /** What went wrong, in words; empty when the attack failed as it must. */
  readonly judge: (after: Aftermath) => readonly string[];
}

/** How the user's repository stands when the work was brought out, looked at and merged. */
export interface Aftermath {
  /** Names in the directory that nothing may write to. */
  readonly ran: readonly string[];
  /** What of the user's own, besides the branch of the task, is not as it was. */
  readonly changed: readonly string[];
  /** Of the commit on the branch of the task: "mode type id\tpath". */
  readonly tree: readonly string[];
  /** The difference that was shown, as text. */
  readonly diff: string;
  /** Commits between the base and the branch of the task, by their first lines. */
  readonly commits: readonly string[];
  /** What a merge without further words took, and what it left to be named. */
  readonly merged: readonly string[];
  readonly left: readonly string[];
  /** Of the files in the user's project afterwards: "mode links path". */
  readonly files: readonly string[];
}

/** A program that takes more than it was given, in a sandbox of its own with small limits. */
export interface GreedAttack extends Attempt {
  /** As the configuration names them. */
  readonly limits: Readonly<Record<string, string>>;
  /** Prints "got it" if nothing has stopped it, and "refused" with the error by which it saw that more was refused. */
  readonly perl: string;
  /** All that may have ended it. Whatever else did has shown nothing of the limit. */
  readonly heldBy: {
    /** Errors that the program itself may see. */
    readonly refused?: readonly string[];
    /** Limits for which it is ended, as the words that name them: "limits.disk". */
    readonly ended?: readonly string[];
    /** Or by the kernel; on another machine without a word, because nobody can tell there for what it was killed. */
    readonly killed?: boolean;
    /** What an interpreter says that ends by itself for it. */
    readonly lastWords?: string;
  };
}

export type AnyAttack = Attack | RoadAttack | GreedAttack;

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
  /** A process of the host that belongs to the user whom the sandbox runs as. */
  readonly VICTIM: string;
  readonly HOSTNAME: string;
  /** Names of variables that the configuration gives to every sandbox, separated by blanks. */
  readonly VARIABLES: string;
  /** Places that the configuration shows, separated by blanks. */
  readonly SHOWN: string;
  /** Off: there is no door, and finding none is no breach. */
  readonly NETWORK: 'on' | 'off';
  /** Ports inside: of the proxy, of the name service, of the doors at the addresses of names, and of the endpoints of secrets. */
  readonly DOOR: string;
  readonly NAMES: string;
  readonly TLS_DOOR: string;
  readonly WEB_DOOR: string;
  readonly ENDPOINT: string;
  /** A host that a rule allows, over HTTP on a port: it sends back what it was sent. Empty: there is none. */
  readonly ECHO: string;
  /** The port of the host that the secret is for. */
  readonly SECURE: string;
  /** The address of a service of ours, which runs what it is sent (table-services.ts). Empty: there is none. */
  readonly SERVICE: string;
  /** Where an engine of the task's own is asked. Empty: there is none. */
  readonly ENGINE: string;
  /** The domain below which names lead where no sandbox may go (see origin.ts). */
  readonly DOMAIN: string;
}

/** The lines that are no listed answer; empty when the attack failed as it must. */
export function breaches(attack: Attack, answer: string, inContainer = false): string[] {
  const lines = answer.split('\n').filter((line) => line !== '');
  if (lines.length === 0) return ['(no answer)'];
  return lines.filter(
    (line) =>
      !attack.expect.includes(line.slice(line.lastIndexOf(' = ') < 0 ? 0 : line.lastIndexOf(' = ') + 3)) &&
      !(inContainer && attack.inContainer?.test(line) === true),
  );
}

/** Where they are in every sandbox. */
export const DOORS = { DOOR: '3128', NAMES: '53', TLS_DOOR: '443', WEB_DOOR: '80', ENDPOINT: '3129' } as const;
