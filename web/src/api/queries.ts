// web/src/api/queries.ts: cached server data by query key. live/ keeps it up to date.
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ApiAbout, ApiBranches, ApiProject, ApiTaskDetail, ApiTasks } from '../../../src/protocol/api/api.ts';
import type { ApiConfiguredServices } from '../../../src/protocol/api/services.ts';
import { api } from './client.ts';

export const keys = {
  about: ['about'] as const,
  projects: ['projects'] as const,
  branches: (project: string) => ['branches', project] as const,
  services: (project: string) => ['services', project] as const,
  tasks: ['tasks'] as const,
  search: (project: string, q: string) => ['search', project, q] as const,
  task: (task: string) => ['task', task] as const,
  changes: (task: string) => ['changes', task] as const,
  checks: (task: string) => ['checks', task] as const,
  trial: (task: string) => ['trial', task] as const,
  network: (project: string, task: string | null) => ['network', project, task] as const,
  storage: ['storage'] as const,
};

export const useAbout = (): UseQueryResult<ApiAbout> =>
  useQuery({ queryKey: keys.about, queryFn: async () => api.about(), staleTime: 60_000 });

export const projectsQuery = queryOptions({
  queryKey: keys.projects,
  queryFn: async () => api.projects(),
});

export const useProjects = (): UseQueryResult<ApiProject[]> =>
  useQuery({ ...projectsQuery, select: ({ projects }) => projects });

export const useBranches = (project: string): UseQueryResult<ApiBranches> =>
  useQuery({
    queryKey: keys.branches(project),
    queryFn: async () => api.branches(project),
    staleTime: 10_000,
  });

export const useProjectServices = (project: string): UseQueryResult<ApiConfiguredServices> =>
  useQuery({
    queryKey: keys.services(project),
    queryFn: async () => api.projectServices(project),
    staleTime: 10_000,
  });

/** Tasks of all projects: those that need the user are shown on every page. */
export const tasksQuery = queryOptions({ queryKey: keys.tasks, queryFn: async () => api.tasks({}) });

export const useTasks = (): UseQueryResult<ApiTasks> => useQuery(tasksQuery);

export const useTask = (task: string): UseQueryResult<ApiTaskDetail> =>
  useQuery({ queryKey: keys.task(task), queryFn: async () => api.task(task) });
