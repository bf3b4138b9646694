"""Message definitions that old recordings leave out, as their owners publish them, and type stores made of definitions.

Sources: unitree_ros2 (`unitree_hg/msg`, `unitree_go/msg`; the field order and widths are those that `crc.py` of
unitree_sdk2_python packs), mocap4r2_msgs, motion_capture_tracking_interfaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from asap_core.rollouts.ingest.readers.layout import Layout, Packing, fixed_layout

_LOW_HEAD = """\
uint8[2] head
uint8 level_flag
uint8 frame_reserve
uint32[2] sn
uint32[2] version
uint16 bandwidth
"""

_IMU_HEAD = """\
float32[4] quaternion
float32[3] gyroscope
float32[3] accelerometer
float32[3] rpy
"""

DEFINITIONS: Mapping[str, str] = {
    "unitree_hg/msg/IMUState": _IMU_HEAD + "int16 temperature\n",
    "unitree_hg/msg/MotorState": """\
uint8 mode
float32 q
float32 dq
float32 ddq
float32 tau_est
int16[2] temperature
float32 vol
uint32[2] sensor
uint32 motorstate
uint32[4] reserve
""",
    "unitree_hg/msg/LowState": """\
uint32[2] version
uint8 mode_pr
uint8 mode_machine
uint32 tick
unitree_hg/IMUState imu_state
unitree_hg/MotorState[35] motor_state
uint8[40] wireless_remote
uint32[4] reserve
uint32 crc
""",
    "unitree_hg/msg/MotorCmd": """\
uint8 mode
float32 q
float32 dq
float32 tau
float32 kp
float32 kd
uint32 reserve
""",
    "unitree_hg/msg/LowCmd": """\
uint8 mode_pr
uint8 mode_machine
unitree_hg/MotorCmd[35] motor_cmd
uint32[4] reserve
uint32 crc
""",
    "unitree_go/msg/IMUState": _IMU_HEAD + "int8 temperature\n",
    "unitree_go/msg/MotorState": """\
uint8 mode
float32 q
float32 dq
float32 ddq
float32 tau_est
float32 q_raw
float32 dq_raw
float32 ddq_raw
int8 temperature
uint32 lost
uint32[2] reserve
""",
    "unitree_go/msg/BmsState": """\
uint8 version_high
uint8 version_low
uint8 status
uint8 soc
int32 current
uint16 cycle
int8[2] bq_ntc
int8[2] mcu_ntc
uint16[15] cell_vol
""",
    "unitree_go/msg/LowState": _LOW_HEAD
    + """\
unitree_go/IMUState imu_state
unitree_go/MotorState[20] motor_state
unitree_go/BmsState bms_state
int16[4] foot_force
int16[4] foot_force_est
uint32 tick
uint8[40] wireless_remote
uint8 bit_flag
float32 adc_reel
int8 temperature_ntc1
int8 temperature_ntc2
float32 power_v
float32 power_a
uint16[4] fan_frequency
uint32 reserve
uint32 crc
""",
    "unitree_go/msg/MotorCmd": """\
uint8 mode
float32 q
float32 dq
float32 tau
float32 kp
float32 kd
uint32[3] reserve
""",
    "unitree_go/msg/BmsCmd": "uint8 off\nuint8[3] reserve\n",
    "unitree_go/msg/LowCmd": _LOW_HEAD
    + """\
unitree_go/MotorCmd[20] motor_cmd
unitree_go/BmsCmd bms_cmd
uint8[40] wireless_remote
uint8[12] led
uint8[2] fan
uint8 gpio
uint32 reserve
uint32 crc
""",
    "mocap4r2_msgs/msg/Marker": """\
int8 USE_NAME=0
int8 USE_INDEX=1
int8 USE_BOTH=2
int8 id_type
int32 marker_index
string marker_name
geometry_msgs/Point translation
""",
    "mocap4r2_msgs/msg/RigidBody": """\
string rigid_body_name
mocap4r2_msgs/Marker[] markers
geometry_msgs/Pose pose
""",
    "mocap4r2_msgs/msg/RigidBodies": """\
std_msgs/Header header
uint32 frame_number
mocap4r2_msgs/RigidBody[] rigidbodies
""",
    "motion_capture_tracking_interfaces/msg/NamedPose": "string name\ngeometry_msgs/Pose pose\n",
    "motion_capture_tracking_interfaces/msg/NamedPoseArray": """\
std_msgs/Header header
motion_capture_tracking_interfaces/NamedPose[] poses
""",
}
"""By message type."""


@cache
def known_types() -> Any:
    """A type store of the ROS 2 standard messages and `DEFINITIONS`."""
    store = get_typestore(Stores.LATEST)
    store.register({k: v for name, text in DEFINITIONS.items() for k, v in get_types_from_msg(text, name).items()})
    return store


@lru_cache(64)
def stored_types(type_name: str, encoding: str, text: str) -> Any:
    """A type store of what a recording says of `type_name`.

    Args:
        type_name: `package/msg/Name`.
        encoding: `ros1msg`, `ros2msg` or `ros2idl`.
        text: the definition with those it needs.
    """
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_idl(text) if encoding == "ros2idl" else get_types_from_msg(text, type_name))
    return store


def definition_text(type_name: str) -> str:
    """The definition of `type_name` followed by those it needs, as an MCAP schema of encoding ros2msg holds it."""
    return str(known_types().generate_msgdef(type_name, ros_version=2)[0])


@cache
def known_layout(type_name: str, packing: Packing) -> Layout:
    """The layout of one of `DEFINITIONS` or of a standard message of fixed size."""
    return fixed_layout(known_types().fielddefs, type_name, packing)
