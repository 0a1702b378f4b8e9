// web/src/settings/projects.tsx: the projects that are listed. Taking one off the list deletes nothing.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { runAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useProjects } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { say, sayFailure } from '../ui/toasts.tsx';
import { Section, Setting } from './section.tsx';

export function Projects(): ReactNode {
  const { data } = useProjects();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: async (project: string) => api.removeProject(project),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: keys.projects });
      say('Taken off the list; its files and tasks stay');
    },
    onError: (error) => sayFailure(error),
  });
  return (
    <Section title="Projects" about="A project that tasks name stays on the list.">
      {data?.map((project) => (
        <Setting
          key={project.id}
          name={cleanLine(project.name)}
          about={
            <span className="font-mono text-sm wrap-anywhere">
              {cleanLine(project.path)}, {plural(project.tasks, 'task')}
            </span>
          }
        >
          <Button
            size="small"
            aria-label={`Take off the list: ${cleanLine(project.name)}`}
            onClick={() => remove.mutate(project.id)}
          >
            Take off the list
          </Button>
        </Setting>
      ))}
      <Button className="mt-3" onClick={() => runAction('add-project')}>
        Add a project
      </Button>
    </Section>
  );
}
