// web/src/shell/add-project.tsx: a repository on this machine, or one to be cloned.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/fields.tsx';
import { Failure } from '../ui/states.tsx';

export function AddProject({ open, onClose }: { open: boolean; onClose: () => void }): ReactNode {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Add a project"
      about="A git repository on this machine, or the address of one to clone. It is cloned by your own git with your own sign-in, outside any sandbox."
    >
      <AddProjectForm onDone={onClose} />
    </Dialog>
  );
}

export function AddProjectForm({ onDone }: { onDone: () => void }): ReactNode {
  const [where, setWhere] = useState('');
  const navigate = useNavigate();
  const client = useQueryClient();
  const add = useMutation({
    mutationFn: async () => api.addProject(isAddress(where.trim()) ? { url: where.trim() } : { path: where.trim() }),
    onSuccess: async (project) => {
      await client.invalidateQueries({ queryKey: keys.projects });
      onDone();
      await navigate({ to: '/p/$project', params: { project: project.id }, search: {} });
    },
  });
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (where.trim() !== '') add.mutate();
      }}
    >
      <TextField
        label="Path or address"
        value={where}
        onChange={setWhere}
        placeholder="/home/me/webshop or https://example.com/me/webshop.git"
        mono
        ready
      />
      {add.isError ? <Failure tight error={add.error} /> : null}
      <div className="flex justify-end gap-2">
        <Button type="submit" look="primary" disabled={where.trim() === '' || add.isPending}>
          {isAddress(where.trim()) ? 'Clone' : 'Add'}
        </Button>
      </div>
    </form>
  );
}

/** An address has a scheme, or is of the form that ssh knows: git@host:path. */
function isAddress(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /^[^/\s:]+@[^/\s:]+:/.test(text);
}
