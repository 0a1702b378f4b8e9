// test/faults/faults.ts: the faults: killed and frozen processes, a full disk, a changed clock, a dead origin.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Act, Begun } from './acts.ts';
import type { Dice } from './dice.ts';
import { CAN_FILL, endIfThere, readIfThere, type Ground } from './ground.ts';
import type { Role } from './processes.ts';

export interface Fault {
  readonly name: string;
  /** Runs before the act. */
  prepare?(ground: Ground): void;
  /** Strikes during the act and returns when the fault is over. False: the process was not running. */
  strike(ground: Ground, begun: Begun, dice: Dice): Promise<boolean>;
  /** Restores normal conditions. */
  heal?(ground: Ground): void;
}

/** The faults that can hit this act. Kills are most frequent: a killed process cannot clean up. */
export function faultsFor({ roles, online }: Act, ground: Ground): Fault[] {
  const kills = roles.map(kill);
  return [
    ...kills,
    ...kills,
    ...roles.filter((role) => role !== 'helper').map(freeze),
    ...(CAN_FILL && ground.mountsOf !== 'self' ? [fullDisk, fullDisk] : []),
    clock(3),
    clock(-3),
    ...(online === true ? [upstream('cut'), upstream('silent'), upstream('cut'), upstream('silent')] : []),
  ];
}

function kill(role: Role): Fault {
  return {
    name: `kill ${role}`,
    async strike(ground, begun, dice) {
      const pid = await victim(ground, begun, role, dice);
      return pid !== null && endIfThere(pid);
    },
  };
}

/** Freezes a process for less than a second while others continue. */
function freeze(role: Role): Fault {
  return {
    name: `freeze ${role}`,
    async strike(ground, begun, dice) {
      const pid = await victim(ground, begun, role, dice);
      if (pid === null || !endIfThere(pid, 'SIGSTOP')) return false;
      try {
        const listed = await ground.ags('list');
        if (listed.code !== 0) throw new Error(`ags list beside a ${role} that is frozen: ${listed.stderr}`);
        await sleep(100 + dice.share() * 700);
      } finally {
        endIfThere(pid, 'SIGCONT');
      }
      return true;
    },
  };
}

const fullDisk: Fault = {
  name: 'full disk',
  async strike(ground, _begun, dice) {
    ground.fillDisk();
    await sleep(100 + dice.share() * 1200);
    ground.freeDisk();
    return true;
  },
  heal: (ground) => ground.freeDisk(),
};

/** Changes the clock of the commands and their runner only. */
function clock(days: number): Fault {
  return {
    name: `clock ${days > 0 ? 'forwards' : 'backwards'}`,
    prepare(ground) {
      ground.movable = true;
    },
    async strike(ground) {
      ground.moveClock(days * 86_400);
      return true;
    },
    heal(ground) {
      ground.movable = false;
      ground.moveClock(0);
    },
  };
}

function upstream(how: 'cut' | 'silent'): Fault {
  return {
    name: `upstream ${how}`,
    async strike(ground, begun, dice) {
      ground.upstream = how;
      await Promise.race([begun.running.ended, sleep(300 + dice.share() * 1200)]);
      return true;
    },
    heal(ground) {
      ground.upstream = 'well';
    },
  };
}

/** Waits for the process as long as the act runs. */
async function victim(ground: Ground, { running }: Begun, role: Role, dice: Dice): Promise<number | null> {
  if (role === 'cli') return running.isOver() ? null : (running.child.pid ?? null);
  if (role === 'helper') return helper(running.child.pid ?? 0, running.isOver);
  for (let left = 100; left > 0; left--) {
    const found = ground.processes().filter((one) => one.role === role);
    if (found.length > 0) return dice.pick(found).pid;
    if (running.isOver() && !ground.processes().some((one) => one.role === 'runner')) return null;
    await sleep(10);
  }
  return null;
}

/** Polls for a child of the command, because such a program runs only for a moment. */
async function helper(parent: number, isOver: () => boolean): Promise<number | null> {
  while (!isOver()) {
    const [child] = (readIfThere(`/proc/${parent}/task/${parent}/children`) ?? '').split(' ');
    if (child !== undefined && child !== '') return Number(child);
    await sleep(1);
  }
  return null;
}
