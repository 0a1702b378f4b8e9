// web/src/shell/current.ts: which project and task the address names.
import { useParams } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { ApiProject } from '../../../src/protocol/api/api.ts';
import { useProjects } from '../api/queries.ts';
import { usePreference } from '../look/preferences.ts';

interface Here {
  /** Of the address, or the last one that was open: settings belong to no project. */
  readonly project: string | null;
  readonly task: string | null;
}

export function useHere(): Here {
  const params: { project?: string; task?: string } = useParams({ strict: false });
  const [last, setLast] = usePreference<string | null>('last-project', null);
  useEffect(() => {
    if (params.project !== undefined && params.project !== last) setLast(params.project);
  }, [params.project, last, setLast]);
  const { data: projects } = useProjects();
  return { project: params.project ?? last ?? projects?.[0]?.id ?? null, task: params.task ?? null };
}

export function useHereProject(): ApiProject | null {
  const { project } = useHere();
  const { data } = useProjects();
  return data?.find(({ id }) => id === project) ?? null;
}
