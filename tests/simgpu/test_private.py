"""Inner names of torch: each is there, is what we take it for, and is used through one package alone."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import torch

import gpututor
from gpututor.errors import TorchNotSupported
from gpututor.simgpu import private
from gpututor.simgpu.private import asked as asked_names
from gpututor.simgpu.private import needing
from gpututor.simgpu.private.needing import asked_for, attribute, found, need, seam, torchs_own, used
from tests.simgpu.private_uses import own_names, private_uses

for _part in pkgutil.iter_modules(private.__path__):
    importlib.import_module(f"{private.__name__}.{_part.name}")

PACKAGE = Path(gpututor.__file__).parent
HOME = PACKAGE / "simgpu" / "private"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if HOME not in path.parents)

# What each name is, as torch's source from 2.10 to 2.14 has it. A list of words is what a function of Python takes.
KINDS = {
    "torch.Tensor._make_wrapper_subclass": "C",
    "torch.Tensor._is_view": "method",
    "torch.Tensor._indices": "method",
    "torch.Tensor._values": "method",
    "torch._C._disabled_torch_function_impl": "C",
    "torch._C._are_functorch_transforms_active": "C",
    "torch._C._DisableTorchDispatch": "class",
    "torch._C._set_conj": "C",
    "torch._C._set_neg": "C",
    "torch._C._dispatch_has_kernel_for_dispatch_key": "C",
    "torch._C._push_on_torch_dispatch_stack": "C",
    "torch._C._ExcludeDispatchKeyGuard": "class",
    "torch._C.DispatchKeySet": "class",
    "torch._C._dispatch_key_parse": "C",
    "torch._C._get_fp32_precision_getter": "C",
    "torch._C._acc.PrivateUse1Hooks": "class",
    "torch._C._acc.DeviceGuard": "class",
    "torch._C._autograd.DeviceType.PrivateUse1": "value",
    "torch._C._distributed_c10d._set_thread_isolation_mode": "C",
    "torch._library.simple_registry.find_torch_dispatch_rule": "op torch_dispatch_class",
    "torch.utils._python_dispatch.TorchDispatchMode": "class",
    "torch.utils.backend_registration._setup_privateuseone_for_python_backend": (
        "rename backend_module hook device_guard"
    ),
    "torch.autograd.graph._engine_run_backward": "t_outputs args kwargs",
    "torch.autograd._engine_run_backward": "t_outputs args kwargs",
    "torch.autograd.Variable._execution_engine": "value",
    "torch.random._seed_custom_device": "seed",
    "torch.nn.Module._apply": "self fn recurse",
    "torch.optim.optimizer._foreach_supported_types": "list",
    "torch.utils._foreach_utils._foreach_supported_types": "list",
    "torch.utils.data.dataloader._BaseDataLoaderIter": "class",
    "torch._utils._take_tensors": "tensors size_limit",
    "torch.utils._pytree.tree_leaves": "tree is_leaf",
    "torch.utils._pytree.tree_flatten": "tree is_leaf",
    "torch.utils._pytree.tree_unflatten": "leaves treespec",
    "torch.utils._device._device_constructors": "cached",
    "torch.utils._device.DeviceContext": "class",
    "torch.jit._builtins._find_builtin": "fn",
    "torch.jit._builtins._register_builtin": "fn op",
    "torch.jit._builtins._get_builtin_table": "",
    "torch.cuda._utils": "module",
    "torch._utils._rebuild_tensor": "storage storage_offset size stride",
    "torch._utils._rebuild_tensor_v3": (
        "storage storage_offset size stride requires_grad backward_hooks dtype metadata"
    ),
    "torch._utils._rebuild_parameter": "data requires_grad backward_hooks",
    "torch._utils._rebuild_parameter_with_state": "data requires_grad backward_hooks state",
    "torch._weights_only_unpickler._get_allowed_globals": "cached",
    "torch.distributed.distributed_c10d._World": "class",
    "torch.distributed.distributed_c10d._world": "value",
    "torch._subclasses.fake_tensor.FakeTensorMode": "class",
}
OF_INSTANCES = {
    "torch.ops.aten.add.Tensor._schema": (torch.ops.aten.add.Tensor, "FunctionSchema"),
    "torch.ops.aten.add.Tensor._op": (torch.ops.aten.add.Tensor, "builtin_function_or_method"),
    "torch.Generator._cdata": (torch.default_generator, "int"),
    "torch.nn.Module._parameters": (torch.nn.Module(), "dict"),
    "torch.nn.Module._buffers": (torch.nn.Module(), "dict"),
    "torch.nn.Module._modules": (torch.nn.Module(), "dict"),
    "torch.nn.Module._call_impl": (torch.nn.Module(), "method"),
    "torch.nn.Module._compiled_call_impl": (torch.nn.Module(), "NoneType"),
}
FITS = {
    "C": inspect.isbuiltin,
    "method": inspect.ismethoddescriptor,
    "class": inspect.isclass,
    "module": inspect.ismodule,
    "list": lambda it: isinstance(it, list),
    "cached": lambda it: hasattr(it, "cache_clear"),
    "value": lambda it: it is not None and not callable(it),
}


# --- the names --------------------------------------------------------------------------------------------------


def test_of_every_name_it_is_known_what_it_is():
    operators = {path for path in used if path.startswith("torch.ops.aten._")}

    assert set(used) - operators == set(KINDS) | set(OF_INSTANCES)


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
def test_a_name_is_what_we_take_it_for(path, kind):
    it = torchs_own[path]
    if kind in FITS:
        assert FITS[kind](it)
    else:
        assert list(inspect.signature(it).parameters) == kind.split()


@pytest.mark.parametrize(("path", "sample", "kind"), [(path, *facts) for path, facts in OF_INSTANCES.items()])
def test_an_attribute_is_of_its_kind(path, sample, kind):
    assert type(getattr(sample, path.rpartition(".")[2])).__name__ == kind


@pytest.mark.parametrize("path", [path for path in used if path.startswith("torch.ops.aten._")])
def test_an_operator_is_there(path):
    assert isinstance(found(path), torch._ops.OpOverload)


@pytest.mark.parametrize("name", sorted(set(asked_for) - set(asked_names.NAMES_BEFORE_2_13)))
def test_torch_asks_for_a_name_where_we_say(name):
    module = importlib.import_module(asked_for[name][0])

    assert re.search(rf"\b{name}\b", inspect.getsource(module))


def test_each_name_says_what_it_is_for_and_what_breaks():
    uses = [*used.values(), *(use for _, use in asked_for.values())]

    assert all(use.purpose and use.without and not use.without.endswith(".") for use in uses)


# --- a torch without one ----------------------------------------------------------------------------------------


@pytest.fixture
def forgets(monkeypatch):
    """What is looked up in a test is no name that we use."""
    monkeypatch.setattr(needing, "used", {})
    monkeypatch.setattr(needing, "torchs_own", {})


@pytest.mark.parametrize(
    "path", ["torch._C._no_such_name", "torch._no_such_module.name", "torch.Tensor._no_such_method.more"]
)
def test_a_missing_name_is_refused_by_name(forgets, path):
    with pytest.raises(TorchNotSupported, match=rf"lacks {path}, which gpututor needs for tests; without it they fail"):
        need(path, "tests", "they fail")


def test_a_missing_place_is_refused_by_name(forgets):
    with pytest.raises(TorchNotSupported, match=r"lacks torch\.nn\.Module\._moves, which gpututor needs for tests"):
        seam("torch.nn.Module._moves", "tests", "they fail")


def test_a_missing_attribute_is_refused_by_name(forgets):
    with pytest.raises(TorchNotSupported, match=r"lacks torch\.nn\.Module\._gears, which gpututor needs for tests"):
        attribute("torch.nn.Module._gears", torch.nn.Module(), "tests", "they fail")


def test_the_refusal_says_which_torch_it_is_and_which_to_install(forgets):
    with pytest.raises(TorchNotSupported, match=rf"torch {re.escape(torch.__version__)} lacks .*2\.10 to 2\.14"):
        need("torch._gone", "tests", "they fail")


def test_a_place_is_read_and_replaced(forgets):
    place = seam("torch.nn.Module._apply", "tests", "they fail")
    before = place.now()
    try:
        place.put(len)
        assert place.now() is len
    finally:
        place.put(before)


# --- nobody else uses one ---------------------------------------------------------------------------------------

OURS = {name for path in MODULES for name in own_names(ast.parse(path.read_text(encoding="utf-8")))}
TORCHS = {path.rpartition(".")[2] for path in used if not path.startswith("torch.ops.")} - {"PrivateUse1"}
TORCHS = {name for name in TORCHS | set(asked_for) if name.startswith("_")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_uses_no_inner_name_of_torch(path):
    uses = private_uses(path.read_text(encoding="utf-8"), OURS, TORCHS)

    assert not uses, (
        f"{', '.join(uses)}: if it is torch's, put it into gpututor/simgpu/private and import it from there; "
        "if it is another module's of ours, give it a public name"
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import torch._dynamo", "torch._dynamo"),
        ("from torch.utils import _pytree", "torch.utils._pytree"),
        ("from torch._utils import name as ours", "torch._utils.name"),
        ("x = torch._C.Generator", "torch._C"),
        ("aten = torch.ops.aten\ny = aten._to_copy", "torch.ops.aten._to_copy"),
        ("from torch import nn\nnn.Module._apply = None", "torch.nn.Module._apply"),
        ("y = given._cdata", "_cdata"),
        ("y = memory._own", "_own"),
        ("class Net(torch.nn.Module):\n    def _apply(self): ...", "_apply"),
        ("y = getattr(x, '_dynamo_dynamic_indices')", "_dynamo_dynamic_indices"),
        ("setattr(torch.random, '_seed_custom_device', None)", "_seed_custom_device"),
        ("names = {'_lazy_init': None}", "_lazy_init"),
        ("names = 'empty _is_in_bad_fork ones'.split()", "_is_in_bad_fork"),
        ("module = import_module('torch.cuda._utils')", "torch.cuda._utils"),
    ],
)
def test_the_walk_finds(line, name):
    number = line.count("\n") + 2

    assert f"{number}: {name}" in private_uses(f"import torch\n{line}\n", {"_own", "_apply"}, {"_apply"})


@pytest.mark.parametrize(
    "line",
    [
        "class T(torch.Tensor):\n    def __torch_dispatch__(cls, *args): ...",  # torch's public protocol
        "def _own(): ...\ny = x._own",
        "class Net(torch.nn.Module):\n    def f(self): return self._own",
        "x._gpututor_place = 1",
        "z = getattr(x, '_gpututor_place', None)",
        "RANDOM = {'_foreach_add_', 'aten::_index_put_impl_'}",  # operators, to compare with
        "y = name.startswith(('_foreach', '_fused'))",
        "name = f'{mode}_cell'",
        "import os\nos._exit(0)",
    ],
)
def test_the_walk_leaves_alone(line):
    assert not private_uses(f"import torch\n{line}\n", {"_own"})


def test_a_path_in_text_is_found_where_torch_is_not_imported():
    assert private_uses("found = import_module('torch._C')") == ["1: torch._C"]
