// run/run-plan.ts: the plan of a run as a plain value, and the parts of it that the run's file records. Pure.
import { HOST_ROOT, type Layer, type SandboxSpec } from '../protocol/spec.ts';
import type { RunFile } from '../protocol/task.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { borrowedObjects, type PrivateGit } from '../git/private-git.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { rootOf, type Image } from '../sandbox/spec/image.ts';
import { type Machine } from '../sandbox/spec/machine.ts';
import { type PlannedNetwork } from './network/plan-network.ts';
import { type PlannedServices } from './planned-services.ts';
import { type HiddenFiles } from './hidden-files.ts';
import { type Project } from './project.ts';

export interface RunPlan {
  readonly project: Project;
  /** The layers of the workspace in place of the project's files, topmost first. */
  readonly layers?: readonly Layer[];
  readonly config: EffectiveConfig;
  /** The user's configuration, without additions for one agent or one attempt. */
  readonly configured: EffectiveConfig;
  readonly host: NativeHost;
  /** null: the sandbox uses the programs of this machine. */
  readonly image: Image | null;
  readonly hidden: HiddenFiles;
  readonly user: { readonly uid: number; readonly gid: number; readonly name: string; readonly shell: string };
  readonly cwd: string;
  readonly workspace: 'overlay' | 'copy';
  /** The directory of the home that stays; absent: the task's own, which is empty at first. */
  readonly keptHome?: string;
  /** Overlays work here, whatever the workspace is. */
  readonly overlays: boolean;
  /** Programs other than bwrap may create namespaces here. */
  readonly namespaces: boolean;
  readonly machine: Machine;
  readonly network: PlannedNetwork;
  readonly services: PlannedServices;
  /** Agents that a command finds signed in. */
  readonly signedIn?: readonly string[];
  /** Printed once where the plan is weaker or slower than it could be. */
  readonly notices: readonly string[];
}

/** Without a command: the user's own shell. */
export function commandOf({ user }: RunPlan, { command }: { readonly command: readonly string[] }): readonly string[] {
  return command.length > 0 ? command : [user.shell];
}

export function rootOfPlan({ image }: Pick<RunPlan, 'image'>): SandboxSpec['root'] {
  return image === null ? HOST_ROOT : rootOf(image);
}

/** For the run's file: the image stays the same for the whole run. */
export function imageOf({ image }: RunPlan): Pick<RunFile, 'image'> {
  return image === null ? {} : { image: { reference: image.reference, id: image.id } };
}

/** For the run's file: the backend, and its machine if it is remote. */
export function builderOf({ host: { engine } }: RunPlan): Pick<RunFile, 'backend' | 'far'> {
  if (engine === null) return {};
  return engine.far === null ? { backend: engine.name } : { backend: engine.name, far: engine.far };
}

/** Object stores that the private git directory of a run borrows from. */
export function borrowedObjectsOf(plan: RunPlan): PrivateGit['objects'] {
  const { repository } = plan.project;
  return repository === null ? [] : borrowedObjects(repository, shownPlaces(plan));
}

export function shownPlaces({ config }: RunPlan): string[] {
  return config.mounts.map(({ path }) => path);
}
