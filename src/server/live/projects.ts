// server/live/projects.ts: the projects that the page lists: projects the user added, projects of tasks, and clones in progress.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { ApiProject, ApiTask } from '../../protocol/api/api.ts';
import { AgsError } from '../../protocol/errors.ts';
import { cloneProject, planClone } from '../../projects/clone-project.ts';
import {
  addProject,
  forgetProject,
  keepProject,
  projectBranches,
  projectId,
  readProjects,
} from '../../projects/known-projects.ts';
import type { HostContext } from '../../run/host-context.ts';

export interface KnownProjects {
  list(): Promise<ApiProject[]>;
  /** The project's directory; throws if the project is unknown or its clone is unfinished. */
  path(id: string): string;
  add(path: string): Promise<ApiProject>;
  /** Returns at once with state `cloning`; the project becomes `ready` when git has finished. */
  clone(url: string): Promise<ApiProject>;
  forget(id: string): void;
  close(): void;
}

interface Cloning {
  readonly path: string;
  readonly url: string;
  state: 'cloning' | 'failed';
  progress: string | null;
  readonly stop: AbortController;
}

export function createKnownProjects(
  context: HostContext,
  tasks: () => readonly { readonly shown: ApiTask; readonly project: string | null }[],
  onChange: () => void,
): KnownProjects {
  const cloning = new Map<string, Cloning>();

  function known(): { id: string; path: string; url: string | null }[] {
    const added = readProjects(context);
    const ids = new Set(added.map(({ id }) => id));
    const named = new Set(tasks().flatMap(({ project }) => project ?? []));
    const others = [...named].map((path) => ({ id: projectId(path), path, url: null }));
    return [...added, ...others.filter(({ id }) => !ids.has(id) && !cloning.has(id))];
  }

  async function describe(place: { id: string; path: string; url: string | null }): Promise<ApiProject> {
    const own = tasks().filter(({ shown }) => shown.project === place.id);
    const clone = cloning.get(place.id);
    const there = clone === undefined && existsSync(place.path);
    return {
      id: place.id,
      name: basename(place.path),
      path: place.path,
      url: place.url,
      branch: there ? await currentBranch(place.path) : null,
      state: clone?.state ?? (there ? 'ready' : 'missing'),
      progress: clone?.progress ?? null,
      tasks: own.length,
      needYou: own.filter(({ shown }) => shown.group === 'needs-you').length,
    };
  }

  async function currentBranch(path: string): Promise<string | null> {
    try {
      return (await projectBranches(context, path)).current;
    } catch (error) {
      // A repository that git refuses to read stays in the list.
      if (error instanceof AgsError) return null;
      throw error;
    }
  }

  async function follow(id: string, clone: Cloning): Promise<void> {
    try {
      await cloneProject(
        context,
        clone,
        (line) => {
          clone.progress = line;
          onChange();
        },
        clone.stop.signal,
      );
      keepProject(context, clone);
      cloning.delete(id);
    } catch (error) {
      clone.state = 'failed';
      clone.progress = error instanceof Error ? error.message : String(error);
    }
    onChange();
  }

  return {
    list: () =>
      Promise.all([...[...cloning].map(([id, { path, url }]) => ({ id, path, url })), ...known()].map(describe)),
    path(id) {
      const place = known().find((one) => one.id === id);
      if (place !== undefined) return place.path;
      throw new AgsError('path.not-found', `There is no project ${id}.`, { hint: 'Add it first: POST /api/projects' });
    },
    async add(path) {
      const project = await addProject(context, path);
      onChange();
      return describe(project);
    },
    async clone(url) {
      const plan = planClone(context, url);
      const taken = [...cloning.values()].some(({ path }) => path === plan.path);
      if (taken) throw new AgsError('task.busy', 'It is being cloned already.', { hint: 'Wait until that has ended.' });
      const id = projectId(plan.path);
      const clone: Cloning = { ...plan, state: 'cloning', progress: null, stop: new AbortController() };
      cloning.set(id, clone);
      void follow(id, clone);
      onChange();
      return describe({ id, ...plan });
    },
    forget(id) {
      const clone = cloning.get(id);
      clone?.stop.abort();
      cloning.delete(id);
      const had = forgetProject(context, id);
      if (!had && clone === undefined && !known().some((one) => one.id === id))
        throw new AgsError('path.not-found', `There is no project ${id}.`);
      onChange();
    },
    close() {
      for (const { stop } of cloning.values()) stop.abort();
    },
  };
}
