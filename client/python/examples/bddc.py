# SPDX-License-Identifier: Apache-2.0
"""Solves Poisson's equation on a cube by domain decomposition, with a preconditioner that uses the server.

The problem is -Laplace(u) = 1 in the unit cube, with u = 0 on its boundary. It is discretized by trilinear
elements on 4 x 4 x 4 subdomains, each with M elements along an edge. The unknowns inside the subdomains are
eliminated. Conjugate gradients solve for the remaining unknowns, on the interfaces. The preconditioner is
BDDC, balancing domain decomposition by constraints (C. R. Dohrmann, SIAM J. Sci. Comput. 25, 2003; J. Mandel
and C. R. Dohrmann, Numer. Linear Algebra Appl. 10, 2003). Its constraints are corners, and averages over
edges and faces, as in BDDCML's poisson_on_cube.

usage: bddc.py [ADDRESS [M]]     address of a croutd; 127.0.0.1:50051 and 5 by default
"""

import itertools
import sys

import numpy as np
import scipy.sparse as sp

import crout

EDGE = 4  # subdomains along an edge of the cube
TOLERANCE = 1e-6  # limit of the residual, relative to the first one
LIMIT = 500


class Kind:
    """Data shared by subdomains with the same sides on the cube's boundary.

    `fixed[axis]`: whether the low and the high side along the axis are on the boundary. Nodes are numbered
    by x, then y, then z. The unknowns on the interfaces come first, then a row for each constraint:
    corners, edges, faces.
    """

    def __init__(self, m, fixed):
        across = range(m + 1)
        self.xyz = np.array([node[::-1] for node in itertools.product(across, across, across)])
        at_end = np.stack([self.xyz == 0, self.xyz == m], axis=2)
        on_boundary = (at_end & np.array(fixed)).any((1, 2))
        shared = (at_end & ~np.array(fixed)).any((1, 2))
        self.stiffness, self.load = self._assemble(m, on_boundary)
        self.outer = np.flatnonzero(shared)
        self.constraints = self._constraints(m, on_boundary, shared)

    @staticmethod
    def _assemble(m, on_boundary):
        """Assemble the stiffness matrix. Rows and columns of u on the boundary have only the diagonal."""
        h = 1 / (EDGE * m)
        number = np.arange((m + 1) ** 3).reshape(m + 1, m + 1, m + 1)
        corners = [
            number[z : m + z, y : m + y, x : m + x].ravel() for z, y, x in itertools.product((0, 1), repeat=3)
        ]
        by_ends_apart = np.array([1 / 3, 0, -1 / 12, -1 / 12]) * h
        pairs = list(itertools.product(range(8), range(8)))
        entries = np.repeat([by_ends_apart[(a ^ b).bit_count()] for a, b in pairs], m**3)
        rows = np.concatenate([corners[a] for a, _ in pairs])
        columns = np.concatenate([corners[b] for _, b in pairs])
        whole = sp.coo_matrix((entries, (rows, columns))).tocsr()
        free = sp.diags(np.where(on_boundary, 0.0, 1.0))
        kept = free @ whole @ free + sp.diags(np.where(on_boundary, whole.diagonal(), 0))
        load = np.bincount(np.concatenate(corners)) * h**3 / 8
        kept = kept.tocsr()
        kept.eliminate_zeros()
        return kept, np.where(on_boundary, 0, load)

    def _constraints(self, m, on_boundary, shared):
        """Return the nodes of each constraint: shared corners, and inner edges and faces."""
        place = np.select([self.xyz == 0, self.xyz == m], [0, 1], 2)
        found = []
        for ranges in (0, 1, 2):
            places = [p for p in itertools.product(range(3), repeat=3) if p.count(2) == ranges]
            places.sort(key=lambda p: p[::-1] if p.count(2) == 0 else p, reverse=ranges > 0)
            for p in places:
                nodes = np.flatnonzero((place == p).all(1))
                if shared[nodes[0]] and (ranges == 0 or not on_boundary[nodes[0]]):
                    found.append(nodes)
        return found

    def condense(self, client, **options):
        """Eliminate the inner unknowns: compute S = A22 - A21 A11^-1 A12 and the condensed load.

        The load is appended as the last column of the matrix, so that the same elimination condenses it.
        """
        with_load = sp.bmat([[self.stiffness, self.load[:, None]], [None, [[1.0]]]], format="csr")
        S = client.schur_complement(with_load, keep=[*self.outer, len(self.load)], **options).S
        self.complement, self.condensed_load = S[:-1, :-1], S[:-1, -1]

    def local_matrix(self):
        """Return [S C^T; C 0], the matrix that the server factors for a subdomain of this kind."""
        count = len(self.constraints)
        rows = np.repeat(np.arange(count), [len(nodes) for nodes in self.constraints])
        C = np.zeros((count, len(self.outer)))
        C[rows, np.searchsorted(self.outer, np.concatenate(self.constraints))] = 1
        return np.block([[self.complement, C.T], [C, np.zeros((count, count))]])


class Cube:
    """The subdomains, with the indices of their interface unknowns."""

    def __init__(self, m):
        along = range(EDGE)
        self.m = m
        self.places = [place[::-1] for place in itertools.product(along, along, along)]
        fixed = [tuple((i == 0, i == EDGE - 1) for i in place) for place in self.places]
        self.distinct = {one: Kind(m, one) for one in dict.fromkeys(fixed)}
        self.kinds = [self.distinct[one] for one in fixed]
        nodes = [self._numbers(kind.xyz[kind.outer], place) for kind, place in self._each()]
        self.nodes, unknowns = np.unique(np.concatenate(nodes), return_inverse=True)
        self.unknowns = np.split(unknowns, np.cumsum([len(one) for one in nodes])[:-1])
        # An edge or face is identified by its first node.
        first = [
            self._numbers(kind.xyz[[nodes[0] for nodes in kind.constraints]], place)
            for kind, place in self._each()
        ]
        coarse_nodes, coarse = np.unique(np.concatenate(first), return_inverse=True)
        self.coarse_order = len(coarse_nodes)
        self.coarse = np.split(coarse, np.cumsum([len(one) for one in first])[:-1])
        self.weight = 1 / np.bincount(unknowns)

    def _each(self):
        return zip(self.kinds, self.places, strict=True)

    def _numbers(self, xyz, place):
        side = EDGE * self.m + 1
        return (xyz + np.array(place) * self.m) @ [1, side, side**2]

    def condense(self, client, **options):
        for kind in self.distinct.values():
            kind.condense(client, **options)

    def local_matrices(self):
        """Return a matrix for each subdomain; subdomains of a kind share one array."""
        of_kind = {kind: kind.local_matrix() for kind in self.distinct.values()}
        return [of_kind[kind] for kind in self.kinds]

    def load(self):
        b = np.zeros(len(self.nodes))
        for kind, unknowns in zip(self.kinds, self.unknowns, strict=True):
            b[unknowns] += kind.condensed_load
        return b

    def product(self, x):
        y = np.zeros_like(x)
        for kind, unknowns in zip(self.kinds, self.unknowns, strict=True):
            y[unknowns] += kind.complement @ x[unknowns]
        return y

    def middle(self, x):
        """Return u at the center of the cube, where eight corners meet."""
        side = EDGE * self.m + 1
        return x[np.searchsorted(self.nodes, side**3 // 2)]


class Preconditioner:
    """BDDC. `solve(b)` must return the solutions with all local matrices for a list of right-hand sides."""

    def __init__(self, cube, solve):
        self.cube, self.solve = cube, solve
        sizes = [(len(kind.outer), len(kind.constraints)) for kind in cube.kinds]
        found = solve([np.eye(unknowns + count, count, -unknowns) for unknowns, count in sizes])
        self.basis = [x[: len(k.outer)] for k, x in zip(cube.kinds, found, strict=True)]
        coarse = np.zeros((cube.coarse_order, cube.coarse_order))
        for kind, x, numbers in zip(cube.kinds, found, cube.coarse, strict=True):
            coarse[np.ix_(numbers, numbers)] -= x[len(kind.outer) :]
        self.coarse_inverse = np.linalg.inv(coarse)

    def __call__(self, r):
        cube = self.cube
        weighted = cube.weight * r
        local = [weighted[unknowns] for unknowns in cube.unknowns]
        found = self.solve([np.append(v, np.zeros(len(c))) for v, c in zip(local, cube.coarse, strict=True)])
        coarse = np.zeros(cube.coarse_order)
        for basis, v, numbers in zip(self.basis, local, cube.coarse, strict=True):
            coarse[numbers] += basis.T @ v
        coarse = self.coarse_inverse @ coarse
        z = np.zeros_like(r)
        for x, basis, unknowns, numbers in zip(found, self.basis, cube.unknowns, cube.coarse, strict=True):
            z[unknowns] += x[: len(unknowns)] + basis @ coarse[numbers]
        return cube.weight * z


def conjugate_gradients(product, precondition, b):
    """Return x, and the norm of the residual after each iteration, relative to the norm of b.

    Makes each direction conjugate to all previous ones, because with approximate factors the preconditioner
    is not exactly symmetric.
    """
    x, r, before, residuals = np.zeros_like(b), b.copy(), [], []
    while len(residuals) < LIMIT and (not residuals or residuals[-1] > TOLERANCE):
        p = precondition(r)
        for direction, image, curvature in before:
            p -= (p @ image) / curvature * direction
        q = product(p)
        before.append((p, q, p @ q))
        x += (r @ p) / (p @ q) * p
        r -= (r @ p) / (p @ q) * q
        residuals.append(np.linalg.norm(r) / np.linalg.norm(b))
    return x, residuals


def main(address="127.0.0.1:50051", m="5"):
    cube = Cube(int(m))
    with crout.connect(address) as client:
        cube.condense(client)
        local = cube.local_matrices()
        print(f"{len(local)} local matrices of orders {min(map(len, local))} to {max(map(len, local))}")
        print(f"{len(cube.nodes)} unknowns between the subdomains, {cube.coarse_order} in the coarse problem")
        with client.lu_factor(local, keep_matrix=False) as f:
            precondition = Preconditioner(cube, lambda sides: f.solve(sides, verify=False))
            u, residuals = conjugate_gradients(cube.product, precondition, cube.load())
    print(f"{len(residuals)} iterations, relative residual {residuals[-1]:.2e}")
    print(f"u in the middle {cube.middle(u):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
